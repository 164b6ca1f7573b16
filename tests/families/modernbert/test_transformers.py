"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax.families.init_params import init_params, init_task_params
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.modernbert.family import FAMILY
from bert_elmo_jax.families.modernbert.huggingface import read_weights, write
from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.weights.parameter_tree import flatten

from ..peers import their_warnings

pytestmark = pytest.mark.peers
CONFIG = ModernBertConfig(
    vocab_size=50, hidden_size=32, num_layers=5, num_heads=4, feed_forward_size=24, max_positions=24,
    local_attention=6, global_theta=5e4, local_theta=300.0, head_activation="silu", initializer_range=0.3, pad_id=0,
)  # fmt: skip
BIASED = dict.fromkeys(("attention_bias", "feed_forward_bias", "norm_bias", "head_bias"), True)
VARIANTS = {
    "plain": {},
    "biased": {**BIASED, "decoder_bias": False, "activation": "relu"},
    "mean": {"pooling": "mean", "attention_pattern": "lg"},
}
MODELS = {
    "mlm": "MaskedLM",
    "classify": "SequenceClassification",
    "choice": "MultipleChoice",
    "tag": "TokenClassification",
    "span": "QuestionAnswering",
}
KINDS = {"classify": "classification", "choice": "choice", "tag": "tags", "span": "questions"}


def task_head(name):
    return TaskHead(KINDS[name], {"classify": 3, "tag": 5}.get(name, 1), pools_pieces=True)


def make_params(name, config):
    """Return fresh parameters, with noise on norms and biases."""
    key = jax.random.key(0)
    params = init_params(FAMILY, config, key, ("mlm",), pooler=False) if name == "mlm" else init_task_params(
        FAMILY, config, task_head(name), key)  # fmt: skip
    draw = np.random.default_rng(1)
    noisy = lambda x: np.asarray(x) + (0.2 * draw.normal(size=x.shape) if x.ndim == 1 else 0)  # noqa: E731
    return jax.tree.map(lambda x: noisy(x).astype(np.float32), params)


def our_logits(name, config, params, tokens, mask):
    if name == "mlm":
        output = FAMILY.build(config).apply({"params": params["encoder"]}, tokens, None, None, mask)
        words = params["encoder"]["embeddings"]["word"]
        return [FAMILY.head("mlm", config).apply({"params": params["mlm"]}, output.last, words)]
    batch = {"tokens": tokens, "types": np.zeros_like(tokens), "segments": mask}
    found = task_outputs(FAMILY.build(config, pooler=True), task_head(name), params, batch)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", MODELS)
def test_out_and_back_is_exact(peers, tmp_path, name, variant):
    torch, transformers = peers
    config = dataclasses.replace(CONFIG, **VARIANTS[variant])
    params = make_params(name, config)
    write(tmp_path / "ours", params, config)
    with their_warnings():
        kind = getattr(transformers, f"ModernBertFor{MODELS[name]}")
        model, info = kind.from_pretrained(tmp_path / "ours", output_loading_info=True, attn_implementation="eager")
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    model.eval()
    shape = (2, 3, 12) if name == "choice" else (2, 12)
    tokens = (np.arange(np.prod(shape)).reshape(shape) * 7 % 49 + 1).astype(np.int32)
    mask = (np.arange(12) < np.array([12, 8]).reshape(2, *[1] * (len(shape) - 1))).astype(np.int32)
    mask = np.broadcast_to(mask, shape)
    with torch.no_grad():
        output = model(torch.tensor(tokens).long(), attention_mask=torch.tensor(mask.copy()).long())
    theirs = [output.start_logits, output.end_logits] if name == "span" else [output.logits]
    ours = our_logits(name, config, params, tokens, mask)
    for mine, other in zip(ours, theirs, strict=True):
        mine, other = np.asarray(mine), np.asarray(other)
        if name in ("mlm", "tag", "span"):
            mine, other = mine[mask == 1], other[mask == 1]
        np.testing.assert_allclose(mine, other, atol=1e-5 * np.abs(other).max(), rtol=0)

    with their_warnings():
        model.save_pretrained(tmp_path / "theirs")
    read, report = read_weights(tmp_path / "theirs")
    assert not report.unexpected and not report.missing
    if name == "mlm":  # the pooler is read from the same tensors as the head
        read["encoder"].pop("pooler")
    a, b = flatten(read), flatten(params)
    assert a.keys() == b.keys()
    for path in a:
        np.testing.assert_array_equal(a[path], b[path], err_msg=path)
    assert ModernBertConfig.from_json(tmp_path / "theirs" / "config.json") == config
