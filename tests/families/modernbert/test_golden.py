"""Our ModernBERT against transformers on PyTorch: the same folders, the same inputs, all outputs, all gradients."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.modernbert.model import MaskedLM, ModernBert

from ..close_outputs import assert_close
from .conftest import as_tree

pytestmark = pytest.mark.usefixtures("strict_dtypes")


@pytest.fixture(scope="module", params=["tiny", "packed"])
def golden(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["plain", "scan+remat", "fused"])
def variant(request, tiny):
    """The golden model with each option that must not change the numbers."""
    options = {name: True for name in ("scan", "remat") if name in request.param}
    attention = "fused" if request.param == "fused" else "reference"
    return tiny._replace(config=dataclasses.replace(tiny.config, attention=attention, **options))


def batch(inputs):
    return inputs["input_ids"].astype(np.int32), None, None, inputs["attention_mask"].astype(np.int32)


def test_every_layer_every_map_and_the_logits(golden):
    config, params, inputs, outputs = golden.config, golden.params, golden.inputs, golden.outputs
    module = ModernBert(config, add_pooler=False)
    encode = jax.jit(functools.partial(module.apply, layers="all", attentions=True))
    output = encode({"params": params["encoder"]}, *batch(inputs))
    real = inputs["attention_mask"] == 1
    for ours, theirs in zip(output.layers, outputs["hidden_states"], strict=True):
        assert_close(ours, theirs, real)
    assert_close(output.last, outputs["hidden_states"][-1], real)
    queries = np.broadcast_to(real[None, :, None, :], outputs["attentions"].shape[:-1])
    assert_close(output.attentions, outputs["attentions"], queries)
    logits = MaskedLM(config).apply({"params": params["mlm"]}, output.last, params["encoder"]["embeddings"]["word"])
    assert_close(logits, golden.logits, real)


def mean_loss(params, config, inputs, labels):
    tokens = inputs[0]
    last = ModernBert(config, add_pooler=False).apply({"params": params["encoder"]}, *inputs).last
    k = (labels >= 0).sum(1).max()
    weights = np.sort(labels >= 0, axis=1)[:, ::-1][:, :k].astype(np.float32)
    places = (np.argsort(labels < 0, axis=1, kind="stable")[:, :k] * (weights > 0)).astype(np.int32)
    targets = np.maximum(np.take_along_axis(labels, places, 1), 0).astype(np.int32)
    words = params["encoder"]["embeddings"]["word"]
    logits = MaskedLM(config).apply({"params": params["mlm"]}, last, words, places)
    assert logits.shape == (len(tokens), k, config.vocab_size)
    surprise = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0]
    return (surprise * weights).sum() / weights.sum()


def check_gradients(golden):
    grad = jax.value_and_grad(functools.partial(mean_loss, config=golden.config, inputs=batch(golden.inputs),
                                                labels=golden.labels))  # fmt: skip
    value, gradients = jax.jit(grad)(golden.params)
    np.testing.assert_allclose(value, golden.outputs["loss"], rtol=1e-5)
    theirs = as_tree({n.removeprefix("grad/"): x for n, x in golden.outputs.items() if n.startswith("grad/")})
    assert jax.tree.structure(gradients) == jax.tree.structure(theirs)
    largest = max(np.abs(g).max() for g in jax.tree.leaves(theirs))
    worst = jax.tree.map(lambda a, b: float(np.abs(a - b).max() / largest), gradients, theirs)
    assert max(jax.tree.leaves(worst)) <= 1e-5, worst


def test_loss_and_every_gradient(variant):
    check_gradients(variant)


def test_loss_and_every_gradient_of_the_other(packed):
    check_gradients(packed)


def test_packed_rows_equal_padded_rows(packed):
    """And both equal the numbers of transformers."""
    config, params, inputs, outputs = packed.config, packed.params, packed.inputs, packed.outputs
    rows = [inputs[f"packed/{name}"].astype(np.int32) for name in ("input_ids", "position_ids", "segments")]
    apply = jax.jit(ModernBert(config, add_pooler=False).apply)
    last = np.asarray(apply({"params": params["encoder"]}, rows[0], None, rows[1], rows[2]).last)
    padded = apply({"params": params["encoder"]}, *batch(inputs)).last
    assert_close(last, outputs["packed/last_hidden_state"], rows[2] > 0)
    real = rows[2] > 0
    np.testing.assert_allclose(last[real], np.asarray(padded)[inputs["attention_mask"] == 1], atol=4e-6)
    arguments = {"config": config, "inputs": (rows[0], None, rows[1], rows[2]), "labels": inputs["packed/mlm_labels"]}
    value = jax.jit(functools.partial(mean_loss, **arguments))(params)
    np.testing.assert_allclose(value, outputs["packed/loss"], rtol=1e-5)
    # A mask without segments would change them.
    wrong = apply({"params": params["encoder"]}, rows[0], None, rows[1], np.ones_like(rows[2])).last
    assert np.abs(np.asarray(wrong) - last)[real].max() > 0.01
