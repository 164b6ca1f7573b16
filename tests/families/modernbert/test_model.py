"""ModernBERT's module: its ways to run the layers, biases, pooling, initialisation, dropout."""

import dataclasses

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

pytestmark = pytest.mark.usefixtures("strict_dtypes")
CONFIG = ModernBertConfig(
    vocab_size=50, hidden_size=16, num_layers=3, num_heads=2, feed_forward_size=12, max_positions=32,
    local_attention=4, initializer_range=0.5, pad_id=0,
)  # fmt: skip
TOKENS = np.arange(20, dtype=np.int32).reshape(2, 10) + 1
SEGMENTS = np.array([[1] * 10, [1] * 4 + [2] * 4 + [0] * 2], np.int32)
POSITIONS = np.array([[*range(10)], [*range(4), *range(4), 0, 0]], np.int32)


def params_of(config, heads=("mlm",)):
    return init_params(FAMILY, config, jax.random.key(0), heads)


def encode(config, params, **how):
    module = ModernBert(config, add_pooler="pooler" in params["encoder"])
    return module.apply({"params": params["encoder"]}, TOKENS, None, POSITIONS, SEGMENTS, **how)


@pytest.fixture(scope="module")
def params():
    return params_of(CONFIG)


@pytest.mark.parametrize(
    ("pattern", "num_layers"),
    [("gl", 6), *(pytest.param(other, 8, marks=pytest.mark.long) for other in ("gll", "g", "gllllllll"))],
)
def test_scanned_layers_equal_layers_one_by_one(pattern, num_layers):
    """After the first layer: two periods and one layer more, also of three layers; seven; none that repeats."""
    config = dataclasses.replace(CONFIG, attention_pattern=pattern, num_layers=num_layers)
    params = params_of(config)

    def total(params, config, key):
        how = {"layers": "all", "attentions": True, "deterministic": False, "rngs": {"dropout": key}}
        output = encode(config, params, **how)
        return output.last.sum() + output.layers[3].sum(), output

    config = dataclasses.replace(config, dropout=0.2, attention_dropout=0.1, embedding_dropout=0.1)
    compute = jax.jit(jax.grad(total, has_aux=True), static_argnums=1)
    plain, others = (
        compute(params, dataclasses.replace(config, scan=scan, remat=scan), jax.random.key(1)) for scan in (False, True)
    )
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(others), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(a).max()))


def test_scan_compiles_one_period():
    text = {}
    for scan in (False, True):
        config = dataclasses.replace(CONFIG, num_layers=13, scan=scan)
        shapes = jax.eval_shape(lambda config=config: params_of(config, ()))
        lowered = jax.jit(lambda params, config=config: encode(config, params).last).lower(shapes)
        text[scan] = lowered.as_text().count("dot_general")
    assert text[True] * 2 < text[False]


def test_find_period_of_modernberts_layers():
    assert find_period("llg" * 7) == 3 and find_period("llgll") == 3 and find_period("lgg") == 3


def test_a_local_layer_sees_its_window_and_no_more():
    config = dataclasses.replace(CONFIG, num_layers=1, attention_pattern="l")
    params = params_of(config)
    before = encode(config, params).last
    changed = TOKENS.copy()
    changed[0, 5] = 40
    after = ModernBert(config).apply({"params": params["encoder"]}, changed, None, POSITIONS, SEGMENTS).last
    moved = np.abs(np.asarray(after - before)).max(-1) > 0
    assert moved[0].tolist() == [False] * 3 + [True] * 5 + [False] * 2
    assert not moved[1].any()


def test_fused_attention_gives_the_same_numbers(params):
    real = SEGMENTS > 0
    fused = encode(dataclasses.replace(CONFIG, attention="fused"), params).last
    np.testing.assert_allclose(fused[real], encode(CONFIG, params).last[real], atol=2e-5)


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
    config = dataclasses.replace(
        CONFIG, num_layers=2, scan=False, attention_bias=True, feed_forward_bias=True, norm_bias=True, head_bias=True
    )
    params = params_of(config)
    flat = flatten(params["encoder"])
    gradients = jax.grad(lambda p: jnp.square(encode(config, {"encoder": p}).pooled).sum())(params["encoder"])
    silent = [path for path, g in flatten(gradients).items() if not np.abs(g).max()]
    assert not silent and len(flat) == len(flatten(gradients))


def test_pooled_vectors_of_packed_texts(params):
    firsts = np.array([[0, 0], [0, 4]], np.int32)
    output = encode(CONFIG, params, nsp_positions=firsts)
    everywhere = encode(CONFIG, params, pool_pieces=True).pooled
    assert everywhere.shape == (2, 10, 16)
    np.testing.assert_allclose(output.pooled[1, 1], everywhere[1, 4], atol=1e-6)
    np.testing.assert_allclose(encode(CONFIG, params).pooled, output.pooled[:, 0], atol=1e-6)


def test_mean_pooling_is_of_the_last_layer_over_each_text():
    config = dataclasses.replace(CONFIG, pooling="mean", num_layers=2)
    params = params_of(config)
    firsts = np.array([[0, 0], [0, 4]], np.int32)
    output = encode(config, params, nsp_positions=firsts)
    mean = output.last[1, 4:8].mean(0)
    head = params["encoder"]["pooler"]
    x = jax.nn.gelu(mean @ head["dense"]["kernel"], approximate=False)
    wanted = (x - x.mean()) / np.sqrt(x.var() + config.norm_eps)
    np.testing.assert_allclose(output.pooled[1, 1], wanted * head["norm"]["scale"], atol=1e-4)
    lengths = np.array([10, 4], np.int32)
    module = ModernBert(config)
    alone = module.apply({"params": params["encoder"]}, TOKENS, lengths=lengths).pooled
    np.testing.assert_allclose(alone, output.pooled[:, 0], atol=1e-5)


def test_initial_deviations():
    config = dataclasses.replace(CONFIG, hidden_size=128, num_layers=2, initializer_range=0.02, initializer_cut=3.0)
    params = params_of(config)
    layer = params["encoder"]["layer_0"]
    assert abs(float(layer["attention"]["query"]["kernel"].std()) - 0.02 * 0.9866) < 3e-4
    assert abs(float(layer["attention"]["output"]["kernel"].std()) - 0.01 * 0.9866) < 2e-4
    assert float(np.abs(params["encoder"]["embeddings"]["word"]).max()) > 0.05  # beyond two deviations


def test_rows_that_are_too_long(params):
    with pytest.raises(ValueError, match="rows of 33 tokens were given to a model with 32 positions"):
        ModernBert(CONFIG).apply({"params": params["encoder"]}, np.ones((1, 33), np.int32))


def test_bfloat16_is_close(params):
    rough = encode(dataclasses.replace(CONFIG, dtype="bfloat16"), params)
    plain = encode(CONFIG, params)
    assert rough.last.dtype == jnp.bfloat16
    assert np.abs(rough.last.astype(jnp.float32) - plain.last).max() < 0.2
