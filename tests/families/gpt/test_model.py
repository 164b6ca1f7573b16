"""GPT's module: its ways to run the layers, packed rows, the last piece, initialisation, dropout."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.family import FAMILY
from bert_elmo_jax.families.gpt.model import Gpt
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.weights.parameter_tree import flatten

from ..huggingface_models import Model, random_params

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIG = GptConfig(50, 16, 3, 2, 24, 32, initializer_range=0.5, scale_by_layer=True)
TOKENS = np.arange(20, dtype=np.int32).reshape(2, 10) + 1
SEGMENTS = np.array([[1] * 10, [1] * 4 + [2] * 4 + [0] * 2], np.int32)
POSITIONS = np.array([[*range(10)], [*range(4), *range(4), 0, 0]], np.int32)


@functools.partial(jax.jit, static_argnums=0, static_argnames=("layers", "attentions", "deterministic"))
def encode(config, params, **how):
    return FAMILY.build(config).apply({"params": params["encoder"]}, TOKENS, None, POSITIONS, SEGMENTS, **how)


# The golden of a GPT-1 is in every run of the tests.
@pytest.fixture(scope="module", params=[True, pytest.param(False, marks=pytest.mark.long)], ids=["gpt2", "gpt1"])
def model(request):
    config = dataclasses.replace(CONFIG, norm_first=request.param)
    return config, random_params(Model(config, ""), scale=0.4)


@pytest.mark.long
def test_every_way_to_run_the_layers_gives_the_same(model):
    config, params = model

    def total(params, config, key):
        how = {"layers": (0, 2, -1), "attentions": True, "deterministic": False, "rngs": {"dropout": key}}
        output = encode(config, params, **how)
        return (output.last**3).sum() + output.layers[1].sum(), output

    compute = jax.jit(jax.grad(total, has_aux=True), static_argnums=1)
    plain, scanned = (
        compute(params, dataclasses.replace(config, scan=how, remat=how), jax.random.key(1)) for how in (False, True)
    )
    # The gradients of key biases are zero but for rounding.
    largest = max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(plain))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(scanned), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * largest)
    np.testing.assert_array_equal(plain[1].layers[2], plain[1].last)


def test_fused_attention_and_bfloat16_are_near(model):
    config, params = model
    plain = np.asarray(encode(config, params).last)[SEGMENTS > 0]
    fused = np.asarray(encode(dataclasses.replace(config, attention="fused"), params).last)[SEGMENTS > 0]
    np.testing.assert_allclose(fused, plain, atol=2e-5)
    half = encode(dataclasses.replace(config, dtype="bfloat16"), params, layers="all")
    assert half.last.dtype == half.layers.dtype == jnp.bfloat16
    assert np.abs(np.asarray(half.last, np.float32)[SEGMENTS > 0] - plain).max() < 0.1 * np.abs(plain).max()


def test_the_last_piece_of_rows(model):
    config, params = model
    apply, tree = jax.jit(Gpt(config, add_pooler=True).apply), {"params": params["encoder"]}
    segments = np.array([[1] * 10, [1] * 4 + [0] * 6], np.int32)
    for how in ({"segments": segments}, {"lengths": np.array([10, 4], np.int32)}):
        output = jax.device_get(apply(tree, TOKENS, **how))
        np.testing.assert_allclose(output.pooled, output.last[[0, 1], [9, 3]], atol=1e-6)
    output = jax.device_get(apply(tree, TOKENS))
    np.testing.assert_allclose(output.pooled, output.last[:, -1], atol=1e-6)
    packed = {"segments": np.array([[1] * 5 + [2] * 5, [1] * 4 + [2] * 6], np.int32)}
    output = jax.device_get(apply(tree, TOKENS, **packed, nsp_positions=np.array([[0, 5], [3, 4]], np.int32)))
    np.testing.assert_allclose(output.pooled[0], output.last[0, [4, 9]], atol=1e-6)
    np.testing.assert_allclose(output.pooled[1], output.last[1, [3, 9]], atol=1e-6)


def test_fresh_parameters():
    config = GptConfig(400, 64, 2, 2, 256, 128)
    deep, shallow = (
        flatten(jax.device_get(jax.jit(lambda c=c: init_params(FAMILY, c, jax.random.key(0)))()))
        for c in (config, dataclasses.replace(config, norm_first=False))
    )
    for path in ("encoder/embeddings/word", "encoder/layer_1/attention/query/kernel"):
        assert np.std(deep[path]) == pytest.approx(0.02, rel=0.05)
    for path in ("encoder/layer_1/attention/output/kernel", "encoder/layer_1/feed_forward/down/kernel"):
        assert np.std(deep[path]) == pytest.approx(0.02 / 2, rel=0.05)  # by the root of its four additions
        assert np.std(shallow[path]) == pytest.approx(0.02, rel=0.05)
    assert {*deep} - {*shallow} == {"encoder/norm/scale", "encoder/norm/bias"}
    assert not any(np.any(value) for path, value in deep.items() if path.endswith("bias"))


def test_each_dropout_changes_something(model):
    config, params = model
    off = dataclasses.replace(config, dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0)
    plain = encode(off, params).last
    how = {"deterministic": False, "rngs": {"dropout": jax.random.key(3)}}
    np.testing.assert_array_equal(encode(off, params, **how).last, plain)
    for field in ("dropout", "embedding_dropout", "attention_dropout"):
        moved = encode(dataclasses.replace(off, **{field: 0.3}), params, **how).last
        assert np.abs(np.asarray(moved - plain)).max() > 1e-2, field


def test_long_rows():
    params = random_params(Model(CONFIG, ""))
    with pytest.raises(ValueError, match="rows of 33 tokens were given to a model with 32 positions"):
        Gpt(CONFIG).apply({"params": params["encoder"]}, np.zeros((1, 33), np.int32))
