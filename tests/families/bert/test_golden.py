"""Our BERT against transformers on PyTorch: the same folder, the same inputs, every output and every gradient."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.nn.transformer import MaskedLM

from ..close_outputs import assert_close
from ..logits import pretraining_logits

pytestmark = pytest.mark.usefixtures("strict_dtypes")

# Hugging Face's names in our tree; kept apart from bert_elmo_jax.weights on purpose, as a second opinion.
RENAMED = [
    (r"^bert\.embeddings\.(word|position|token_type)_embeddings\.weight$", r"encoder/embeddings/\1"),
    (r"token_type$", "type"),
    (r"^bert\.embeddings\.LayerNorm", "encoder/embeddings/norm"),
    (r"^bert\.encoder\.layer\.(\d+)\.", r"encoder/layer_\1/"),
    (r"attention\.self\.(query|key|value)", r"attention/\1"),
    (r"attention\.output\.dense", "attention/output"),
    (r"attention\.output\.LayerNorm", "attention/norm"),
    (r"intermediate\.dense", "feed_forward/up"),
    (r"(layer_\d+)/output\.dense", r"\1/feed_forward/down"),
    (r"(layer_\d+)/output\.LayerNorm", r"\1/feed_forward/norm"),
    (r"^bert\.pooler\.dense", "encoder/pooler"),
    (r"^cls\.seq_relationship", "nsp"),
    (r"^cls\.predictions\.transform\.dense", "mlm/dense"),
    (r"^cls\.predictions\.transform\.LayerNorm", "mlm/norm"),
    (r"^cls\.predictions\.bias$", "mlm/bias"),
    (r"norm\.weight$", "norm/scale"),
    (r"\.weight$", "/kernel"),
    (r"\.bias$", "/bias"),
]


def as_tree(tensors):
    tree = {}
    for name, tensor in tensors.items():
        path = functools.reduce(lambda n, rule: re.sub(*rule, n), RENAMED, name).split("/")
        node = functools.reduce(lambda t, part: t.setdefault(part, {}), path[:-1], tree)
        node[path[-1]] = tensor.T if path[-1] == "kernel" else tensor
    return tree


@pytest.fixture(scope="module")
def golden(goldens):
    folder = goldens / "bert_tiny"
    params = as_tree(load_file(folder / "model.safetensors"))
    return (
        BertConfig.from_json(folder / "config.json"),
        params,
        np.load(folder / "inputs.npz"),
        np.load(folder / "outputs.npz"),
    )


@pytest.fixture(scope="module", params=["plain", "scan+remat", "fused"])
def variant(request, golden):
    """The golden model with each option that must not change the numbers."""
    config, *params_and_arrays = golden
    options = {name: True for name in ("scan", "remat") if name in request.param}
    attention = "fused" if request.param == "fused" else "reference"
    return dataclasses.replace(config, attention=attention, **options), *params_and_arrays


def batch(inputs):
    segments = inputs["attention_mask"].astype(np.int32)
    return inputs["input_ids"].astype(np.int32), inputs["token_type_ids"].astype(np.int32), None, segments


def test_every_layer_and_the_pooled_vector(variant):
    config, params, inputs, outputs = variant
    encode = jax.jit(functools.partial(Bert(config).apply, layers="all"))
    output = encode({"params": params["encoder"]}, *batch(inputs))
    real = inputs["attention_mask"] == 1
    for ours, theirs in zip(output.layers, outputs["hidden_states"], strict=True):
        assert_close(ours, theirs, real)
    assert_close(output.last, outputs["hidden_states"][-1], real)
    assert_close(output.pooled, outputs["pooled"])


def test_attention_maps(golden):
    config, params, inputs, outputs = golden
    output = Bert(config).apply({"params": params["encoder"]}, *batch(inputs), attentions=True)
    real = np.broadcast_to((inputs["attention_mask"] == 1)[None, :, None, :], outputs["attentions"].shape[:-1])
    assert_close(output.attentions, outputs["attentions"], real)


def test_logits_everywhere(golden):
    config, params, inputs, outputs = golden
    last = Bert(config).apply({"params": params["encoder"]}, *batch(inputs)).last
    logits = MaskedLM(config).apply({"params": params["mlm"]}, last, params["encoder"]["embeddings"]["word"])
    assert_close(logits, outputs["mlm_logits"], inputs["attention_mask"] == 1)


def loss(params, config, inputs):
    """HF's loss, computed on gathered positions; a row with fewer predictions repeats position 0 at weight 0."""
    labels = inputs["mlm_labels"]
    k = (labels >= 0).sum(1).max()
    weights = np.sort(labels >= 0, axis=1)[:, ::-1][:, :k].astype(np.float32)
    positions = np.argsort(labels < 0, axis=1, kind="stable")[:, :k].astype(np.int32) * (weights > 0)
    targets = np.maximum(np.take_along_axis(labels, positions, 1), 0)
    nsp_positions = np.zeros((len(labels), 1), np.int32)
    logits = pretraining_logits(
        config, params, *batch(inputs), mlm_positions=positions.astype(np.int32), nsp_positions=nsp_positions
    )
    words = -jnp.take_along_axis(jax.nn.log_softmax(logits.mlm), targets[..., None], -1)[..., 0]
    pairs = -jnp.take_along_axis(jax.nn.log_softmax(logits.nsp), inputs["nsp_labels"][:, None, None], -1)
    return (words * weights).sum() / weights.sum() + pairs.mean(), logits


def test_loss_and_every_gradient(variant):
    config, params, inputs, outputs = variant
    (value, logits), gradients = jax.jit(
        jax.value_and_grad(functools.partial(loss, config=config, inputs=inputs), has_aux=True)
    )(params)
    np.testing.assert_allclose(value, outputs["loss"], rtol=1e-5)
    assert_close(logits.nsp[:, 0], outputs["nsp_logits"])
    theirs = as_tree({n.removeprefix("grad/"): outputs[n] for n in outputs if n.startswith("grad/")})
    assert jax.tree.structure(gradients) == jax.tree.structure(theirs)
    largest = max(np.abs(g).max() for g in jax.tree.leaves(theirs))
    worst = jax.tree.map(lambda a, b: float(np.abs(a - b).max() / largest), gradients, theirs)
    assert max(jax.tree.leaves(worst)) <= 1e-5, worst
