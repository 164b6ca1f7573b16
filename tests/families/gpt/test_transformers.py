"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.forward import Wanted, run
from bert_elmo_jax.families.gpt.huggingface import read_weights, write
from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.weights.parameter_tree import flatten

from ..peers import their_warnings
from .test_huggingface import GPT2, MODELS, random_params

pytestmark = pytest.mark.peers
FAMILY = get_family("gpt")
HEADS = {
    "classify": TaskHead("classification", 3, at_end=True, use_bias=False),
    "choice": TaskHead("choice", at_end=True),
    "tag": TaskHead("tags", 5),
    "span": TaskHead("questions"),
}


def our_outputs(params, config, head, ids):
    if head is None:
        return [run(FAMILY, config, params, ids, None, None, None, wanted=Wanted(head="lm")).logits]
    module = FAMILY.build(config, pooler=HEADS[head].pooled)
    batch = {"tokens": ids, "types": np.zeros_like(ids), "segments": np.ones_like(ids)}
    output = task_outputs(module, HEADS[head], params, batch)
    return list(output) if isinstance(output, tuple) else [output]


def their_outputs(torch, model, head, ids):
    if head != "choice":
        return list(model(torch.from_numpy(ids).long(), **({} if head is None else {"use_cache": False})).values())
    last = torch.full(ids.shape[:2], ids.shape[2] - 1)
    return [model(torch.from_numpy(ids).long(), mc_token_ids=last).mc_logits]


@pytest.mark.parametrize("name", MODELS)
def test_out_and_back_is_exact(peers, tmp_path, name):
    torch, transformers = peers
    config, heads, _ = MODELS[name]
    head = next(iter(heads), None)
    params = jax.tree.map(lambda x: 0.3 * x, random_params(config, heads))
    write(tmp_path / "ours", params, config)
    with their_warnings():
        model, info = getattr(transformers, name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    shape = (2, 3, 7) if head == "choice" else (2, 7)
    ids = (8 + np.arange(np.prod(shape)).reshape(shape) % 40).astype(np.int32)  # no padding among them
    with torch.no_grad():
        theirs = their_outputs(torch, model.eval(), head, ids)
    for ours, wanted in zip(our_outputs(params, config, head, ids), theirs, strict=False):
        np.testing.assert_allclose(ours, wanted.numpy(), rtol=1e-4, atol=1e-4)
    with their_warnings():
        model.save_pretrained(tmp_path / "theirs")
    read, report = read_weights(tmp_path / "theirs")
    assert not (report.unexpected or report.missing)
    ours, theirs = flatten(read), flatten(params)
    assert ours.keys() == theirs.keys()
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)


@pytest.mark.parametrize("scale_attention", [True, False])
@pytest.mark.parametrize("scale_by_layer", [True, False])
def test_the_scales_of_scores(peers, tmp_path, scale_attention, scale_by_layer):
    torch, transformers = peers
    config = dataclasses.replace(
        GPT2, scale_attention=scale_attention, scale_by_layer=scale_by_layer, activation="gelu"
    )
    params = jax.tree.map(lambda x: 0.3 * x, random_params(config, ()))
    write(tmp_path / "ours", params, config)
    ids = np.arange(2 * 9).reshape(2, 9).astype(np.int32)
    with their_warnings():
        model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    with torch.no_grad():
        theirs = model.eval()(torch.from_numpy(ids).long()).logits.numpy()
    [ours] = our_outputs(params, config, None, ids)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gpt2_tiny", "gpt_tiny"])
def test_tokenizers(peers, goldens, tmp_path, name):
    """Transformers reads the saved files and gives the same ids."""
    from bert_elmo_jax.text import load_tokenizer

    _, transformers = peers
    ours = load_tokenizer(goldens / "tokenizers" / name)
    for file, content in ours.files_for_transformers(max_positions=64, types=False).items():
        (tmp_path / file).write_bytes(content)
    with their_warnings():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The ship, sails!", "배를 타고", "naïve  Café"):
        assert theirs(text)["input_ids"] == ours.encode(text).ids.tolist()
