"""ModernBERT's module: its ways to run the layers, biases, pooling, initialisation, dropout."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.modernbert.family import FAMILY
from bert_elmo_jax.families.modernbert.model import ModernBert
from bert_elmo_jax.nn.layer_loop import find_period
from bert_elmo_jax.weights.parameter_tree import flatten

from ..huggingface_models import Model, random_params

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIG = ModernBertConfig(
    vocab_size=50, hidden_size=16, num_layers=3, num_heads=2, feed_forward_size=12, max_positions=32,
    local_attention=4, initializer_range=0.5, pad_id=0,
)  # fmt: skip
TOKENS = np.arange(20, dtype=np.int32).reshape(2, 10) + 1
SEGMENTS = np.array([[1] * 10, [1] * 4 + [2] * 4 + [0] * 2], np.int32)
POSITIONS = np.array([[*range(10)], [*range(4), *range(4), 0, 0]], np.int32)


def params_of(config, heads=("mlm",)):
    return random_params(Model(config, "", heads, pooler=True), scale=0.4)


@functools.partial(jax.jit, static_argnums=0, static_argnames=("layers", "attentions", "deterministic", "pool_pieces"))
def encode(config, params, tokens=TOKENS, **how):
    module = ModernBert(config, add_pooler="pooler" in params["encoder"])
    return module.apply({"params": params["encoder"]}, tokens, None, POSITIONS, SEGMENTS, **how)


@pytest.fixture(scope="module")
def params():
    return params_of(CONFIG)


@pytest.mark.long
@pytest.mark.parametrize(("pattern", "num_layers"), [("gl", 5), ("gll", 8), ("g", 8), ("gllllllll", 8)])
def test_scanned_layers_equal_layers_one_by_one(pattern, num_layers):
    """After the first layer: two periods, also of three layers and with one layer more; seven; none that repeats."""
    config = dataclasses.replace(CONFIG, attention_pattern=pattern, num_layers=num_layers)
    params = params_of(config)

    def total(params, config, key):
        how = {"layers": "all", "attentions": True, "deterministic": False, "rngs": {"dropout": key}}
        output = encode(config, params, **how)
        return output.last.sum() + output.layers[3].sum(), output

    config = dataclasses.replace(config, dropout=0.2, attention_dropout=0.1, embedding_dropout=0.1)
    compute = jax.jit(jax.grad(total, has_aux=True), static_argnums=1)
    plain, scanned = (
        compute(params, dataclasses.replace(config, scan=scan, remat=scan), jax.random.key(1)) for scan in (False, True)
    )
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(scanned), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(a).max()))


def test_scan_compiles_one_period():
    text = {}
    for scan in (False, True):
        config = dataclasses.replace(CONFIG, num_layers=13, scan=scan)
        text[scan] = encode.lower(config, params_of(config, ())).as_text().count("dot_general")
    assert text[True] * 2 < text[False]
    assert find_period("llg" * 7) == 3 and find_period("llgll") == 3 and find_period("lgg") == 3


def test_a_local_layer_sees_its_window_and_no_more():
    config = dataclasses.replace(CONFIG, num_layers=1, attention_pattern="l")
    params = params_of(config)
    before = encode(config, params, TOKENS).last
    changed = TOKENS.copy()
    changed[0, 5] = 40
    moved = np.abs(np.asarray(encode(config, params, changed).last) - before).max(-1) > 0
    assert moved[0].tolist() == [False] * 3 + [True] * 5 + [False] * 2
    assert not moved[1].any()


def test_fused_attention_and_bfloat16_are_near(params):
    plain = np.asarray(encode(CONFIG, params).last)
    fused = np.asarray(encode(dataclasses.replace(CONFIG, attention="fused"), params).last)
    np.testing.assert_allclose(fused[SEGMENTS > 0], plain[SEGMENTS > 0], atol=2e-5)
    rough = encode(dataclasses.replace(CONFIG, dtype="bfloat16"), params).last
    assert rough.dtype == jnp.bfloat16
    assert np.abs(np.asarray(rough, np.float32) - plain).max() < 0.2
    with pytest.raises(ValueError, match="rows of 33 tokens were given to a model with 32 positions"):
        ModernBert(CONFIG).apply({"params": params["encoder"]}, np.ones((1, 33), np.int32))


def test_biases_exist_only_where_the_configuration_has_them(params):
    assert [path for path in flatten(params) if path.endswith("bias")] == ["mlm/bias"]
    fields = ("attention_bias", "feed_forward_bias", "norm_bias", "head_bias")
    biased = flatten(params_of(dataclasses.replace(CONFIG, **dict.fromkeys(fields, True))))
    weights = [path for path in biased if path.split("/")[-1] in ("kernel", "scale")]
    assert all(f"{path.rsplit('/', 1)[0]}/bias" in biased for path in weights)
    bare = params_of(dataclasses.replace(CONFIG, decoder_bias=False))
    assert "bias" not in bare["mlm"]
    assert "norm" not in bare["encoder"]["layer_0"]["attention"] and "norm" in bare["encoder"]["layer_1"]["attention"]


def test_biases_change_the_numbers():
    fields = ("attention_bias", "feed_forward_bias", "norm_bias", "head_bias")
    config = dataclasses.replace(CONFIG, num_layers=2, **dict.fromkeys(fields, True))
    params = params_of(config)["encoder"]
    gradients = jax.jit(jax.grad(lambda p: jnp.square(encode(config, {"encoder": p}).pooled).sum()))(params)
    assert not [path for path, g in flatten(gradients).items() if not np.abs(g).max()]


def test_pooled_vectors_of_packed_texts(params):
    firsts = np.array([[0, 0], [0, 4]], np.int32)
    output = np.asarray(encode(CONFIG, params, nsp_positions=firsts).pooled)
    everywhere = np.asarray(encode(CONFIG, params, pool_pieces=True).pooled)
    assert everywhere.shape == (2, 10, 16)
    np.testing.assert_allclose(output[1, 1], everywhere[1, 4], atol=1e-6)
    np.testing.assert_allclose(encode(CONFIG, params).pooled, output[:, 0], atol=1e-6)


def test_mean_pooling_is_of_the_last_layer_over_each_text():
    config = dataclasses.replace(CONFIG, pooling="mean", num_layers=2)
    params = params_of(config)
    firsts = np.array([[0, 0], [0, 4]], np.int32)
    output = jax.device_get(encode(config, params, nsp_positions=firsts))
    mean = output.last[1, 4:8].mean(0)
    head = params["encoder"]["pooler"]
    x = jax.nn.gelu(mean @ head["dense"]["kernel"], approximate=False)
    x = np.asarray(x)
    expected = (x - x.mean()) / np.sqrt(x.var() + config.norm_eps)
    np.testing.assert_allclose(output.pooled[1, 1], expected * head["norm"]["scale"], atol=1e-4)
    lengths = np.array([10, 4], np.int32)
    pooled = jax.jit(ModernBert(config).apply)({"params": params["encoder"]}, TOKENS, lengths=lengths).pooled
    np.testing.assert_allclose(pooled, output.pooled[:, 0], atol=1e-5)


def test_initial_deviations():
    config = dataclasses.replace(CONFIG, hidden_size=128, num_layers=2, initializer_range=0.02, initializer_cut=3.0)
    params = jax.device_get(jax.jit(lambda: init_params(FAMILY, config, jax.random.key(0), ("mlm",)))())
    layer = params["encoder"]["layer_0"]
    assert abs(float(layer["attention"]["query"]["kernel"].std()) - 0.02 * 0.9866) < 3e-4
    assert abs(float(layer["attention"]["output"]["kernel"].std()) - 0.01 * 0.9866) < 2e-4
    assert float(np.abs(params["encoder"]["embeddings"]["word"]).max()) > 0.05  # beyond two deviations
