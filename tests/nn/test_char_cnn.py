"""Tests of the character CNN against a word-by-word implementation, with padding cut at every width."""

import functools
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.nn import CharCNN
from bert_elmo_jax.nn import char_cnn as module
from bert_elmo_jax.nn.char_cnn import convolve, highway, largest_products, places_at_once
from bert_elmo_jax.text.characters import boundary_characters, character_table

pytestmark = pytest.mark.usefixtures("strict_dtypes")
ORACLE = runpy.run_path(str(Path(__file__).parents[1] / "families" / "elmo" / "elmo_oracle.py"))
MAXIMUM = 12
CONFIG = ElmoConfig(
    char_embedding_size=5, max_characters=MAXIMUM, filters=((1, 3), (2, 4), (3, 5), (7, 6), (MAXIMUM, 2)),
    num_highways=2, projection_size=4, cell_size=8,
)  # fmt: skip
# One letter, lengths up to a full word and beyond, and Hangul (three bytes per syllable), cut inside a syllable.
WORDS = ["a", *("abcdefghijklmn"[:n] for n in range(2, 15)), "배", "강가", "은행나무", "Æon"]
LONGEST = {word: min(len(word.encode()), MAXIMUM - 2) + 2 for word in WORDS}


@functools.cache
def params(**changes):
    """Large weights, so that every detail affects the output; the original's initial weights are too small."""
    tree = jax.eval_shape(make(**changes).init, jax.random.key(0), jnp.zeros((1, 3), jnp.int32))["params"]
    random = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.5, x.shape), jnp.float32), tree)


def make(**changes):
    c = CONFIG
    fields = {
        "embedding_size": c.char_embedding_size, "filters": c.filters, "num_highways": c.num_highways,
        "size": c.projection_size, "max_characters": c.max_characters,
    }  # fmt: skip
    return CharCNN(**(fields | changes))


@functools.cache
def compiled(**changes):
    return jax.jit(make(**changes).apply)


def run(characters, tree=None, **changes):
    return np.asarray(compiled(**changes)({"params": tree or params(**changes)}, characters))


@pytest.mark.parametrize("changes", [{}, {"activation": "tanh"}, {"num_highways": 0}, {"size": None}])
def test_words_match_a_plain_implementation(changes):
    table = np.concatenate([character_table(WORDS, MAXIMUM), boundary_characters(MAXIMUM), np.zeros((1, MAXIMUM), int)])
    config = ElmoConfig(
        **vars(CONFIG)
        | {
            "char_activation": changes.get("activation", "relu"),
            "num_highways": changes.get("num_highways", 2),
            "token_projection": "size" not in changes,
            "projection_size": 20 if "size" in changes else 4,
        }
    )
    tree = jax.tree.map(lambda x: np.asarray(x, np.float64), params(**changes))
    expected = [ORACLE["token_vector"](tree, config, list(ids)) for ids in table]
    np.testing.assert_allclose(run(table.astype(np.int32), **changes), expected, atol=1e-5)


@pytest.mark.parametrize("cut", [3, 6, 7, 11])
def test_cutting_padding_changes_nothing(cut):
    words = [word if LONGEST[word] <= cut else WORDS[0] for word in WORDS]
    table = np.concatenate([character_table(words, MAXIMUM), np.zeros((1, MAXIMUM), np.int32)])
    np.testing.assert_allclose(run(table[:, :cut]), run(table), atol=1e-6)
    # The shortest word's vector depends on the padding, so ignoring padding would fail this test.
    spoilt = params() | {"embedding": params()["embedding"].at[260].set(0.0)}
    assert np.abs(run(table[:, :cut], spoilt) - run(table))[0].max() > 1e-2


def test_padding_words_have_zero_embeddings():
    nothing = np.zeros((1, MAXIMUM), np.int32)
    output = run(nothing)
    other = params() | {"embedding": params()["embedding"] * 7}
    np.testing.assert_array_equal(run(nothing, other), output)
    np.testing.assert_array_equal(run(nothing[:, :1]), output)


def naive(characters, embedding, convolutions):
    """Compute all positions at once, with JAX's own gradient."""
    x = jnp.concatenate([jnp.zeros_like(embedding[:1]), embedding])[characters]
    pooled = []
    for convolution in convolutions:
        kernel, bias = convolution["kernel"], convolution["bias"]
        places = x.shape[1] - len(kernel) + 1
        y = sum(x[:, k : k + places] @ kernel[k] for k in range(len(kernel)))
        pooled.append(y.max(1) + bias[None, :])
    return jnp.concatenate(pooled, axis=-1)


def weighted_gradients(function, *args):
    """Return a weighted sum of a function's outputs on all words, and its gradients."""
    tree, table = params(), character_table(WORDS, MAXIMUM)
    weight = np.random.default_rng(5).normal(size=(len(WORDS), 20)).astype(np.float32)

    def total(embedding, convolutions):
        return (function(table, embedding, convolutions, *args) * weight).sum()

    compute = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))
    return compute(tree["embedding"], [tree[f"conv_{n}"] for n in range(len(CONFIG.filters))])


@pytest.fixture(scope="module")
def expected():
    with jax.numpy_dtype_promotion("strict"):
        return weighted_gradients(naive)


@pytest.mark.parametrize("at_once", [1, pytest.param(5, marks=pytest.mark.long), None])
def test_gradients_do_not_depend_on_at_once(at_once, expected, monkeypatch):
    monkeypatch.setattr(module, "places_at_once", lambda words: at_once)
    gradients = weighted_gradients(convolve, MAXIMUM)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), gradients, expected)


def test_leading_axes_and_empty_batches():
    table = character_table(WORDS[:6], MAXIMUM)
    np.testing.assert_allclose(run(table.reshape(2, 3, MAXIMUM)), run(table).reshape(2, 3, -1), atol=1e-6)
    assert run(table[:0]).shape == (0, 4)


def test_invalid_ids_give_nan_and_too_long_words_raise():
    table = character_table(["a", "b"], MAXIMUM)
    table[1, 1] = 262
    ours = run(table)
    assert np.isfinite(ours[0]).all() and np.isnan(ours[1]).any()
    with pytest.raises(ValueError, match="words have 13 characters, expected at least 1 and at most max_characters=12"):
        run(np.zeros((1, 13), np.int32))


def test_highway_mixes_input_and_transform():
    x = jnp.asarray([[1.0, -2.0]])
    transform = {"kernel": jnp.eye(2), "bias": jnp.zeros(2)}
    for bias, expected in [(-100.0, [1.0, -2.0]), (100.0, [1.0, 0.0]), (0.0, [1.0, -1.0])]:
        carry = {"kernel": jnp.zeros((2, 2)), "bias": jnp.full(2, bias)}
        np.testing.assert_allclose(highway(x, carry, transform)[0], expected, atol=1e-6)


def test_bfloat16_is_close_with_float32_parameters():
    table = character_table(WORDS, MAXIMUM)
    near, exact = jax.jit(make(dtype=jnp.bfloat16).apply)({"params": params()}, table), run(table)
    assert near.dtype == jnp.bfloat16
    assert np.abs(np.asarray(near, np.float32) - exact).max() < 0.05 * np.abs(exact).max()
    drawn = jax.eval_shape(make(dtype=jnp.bfloat16).init, jax.random.key(0), table)["params"]
    assert {x.dtype for x in jax.tree.leaves(drawn)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_initialisation_matches_the_original(activation):
    cnn = CharCNN(16, ((1, 32), (7, 512)), 1, 256, activation)
    tree = jax.tree.map(np.asarray, jax.jit(cnn.init)(jax.random.key(0), jnp.zeros((1, 3), jnp.int32))["params"])
    assert 0.99 < np.abs(tree["embedding"]).max() <= 1 and abs(tree["embedding"].std() - 1 / np.sqrt(3)) < 0.01
    kernel = tree["conv_1"]["kernel"]
    if activation == "relu":
        assert 0.049 < np.abs(kernel).max() <= 0.05
    else:
        assert kernel.std() == pytest.approx((7 * 16) ** -0.5, rel=0.02)
    for part, bias in (("carry", -2), ("transform", 0)):
        assert tree["highway_0"][part]["kernel"].std() == pytest.approx(544**-0.5, rel=0.02)
        assert (tree["highway_0"][part]["bias"] == bias).all()
    assert tree["projection"]["kernel"].std() == pytest.approx(544**-0.5, rel=0.02)
    assert not tree["projection"]["bias"].any() and not tree["conv_1"]["bias"].any()


def test_accelerators_convolve(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert places_at_once(200) is None
    x, kernel = jax.random.normal(jax.random.key(0), (3, 6, 4)), jax.random.normal(jax.random.key(1), (2, 4, 5))
    np.testing.assert_allclose(largest_products(x, kernel, None), largest_products(x, kernel, 2), atol=1e-6)
    assert jnp.isnan(largest_products(x.at[:, 2].set(jnp.nan), kernel, None)).all()
