"""Tests of the sampled softmax against TensorFlow's, and of its edge cases."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses import Negatives, cross_entropy, draw_negatives, sampled_softmax

pytestmark = pytest.mark.usefixtures("strict_dtypes")


@pytest.fixture(scope="module")
def golden(goldens):
    """Return TensorFlow's losses and gradients of a batch of 24 positions with 64 negatives from 1,000 words."""
    with np.load(goldens / "sampled_softmax.npz") as stored:
        return {name: jnp.asarray(stored[name]) for name in stored.files if name != "note"}


def tries(golden):
    """Return the number of draws that TensorFlow made, from its expected counts."""
    probability = np.log1p(1 / (np.asarray(golden["sampled"]) + 1.0)) / np.log(1001)
    counts = np.asarray(golden["sampled_expected_count"], np.float64)
    return round(np.median(np.log1p(-counts) / np.log1p(-probability)))


@functools.partial(jax.jit, static_argnames="remove_hits")
def of_golden(golden, remove_hits, expected, weights):
    def loss(hidden, table, bias):
        drawn = golden["labels"], golden["sampled"], *expected
        return sampled_softmax(hidden, table, bias, *drawn, weights, remove_hits=remove_hits)

    gradient = jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)
    return gradient(golden["inputs"], golden["weights"], golden["biases"])


@pytest.mark.parametrize("name", ["remove_hits", "keep_hits"])
@pytest.mark.parametrize("counts", ["given", "ours"])
def test_values_and_gradients_match_tensorflow(golden, name, counts):
    expected = golden["true_expected_count"][:, 0], golden["sampled_expected_count"]
    if counts == "ours":
        negatives = Negatives(golden["sampled"], jnp.int32(tries(golden)), 1000)
        ours = negatives.expected(golden["labels"]), negatives.expected(golden["sampled"])
        for mine, theirs in zip(ours, expected):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)
        expected = ours
    (total, weight), gradients = of_golden(golden, name == "remove_hits", expected, jnp.ones(24))
    np.testing.assert_allclose(total, golden[f"{name}/loss"].sum(), rtol=1e-6)
    assert weight == 24
    for gradient, theirs in zip(gradients, ("inputs", "weights", "biases")):  # TensorFlow's gradient is of the mean
        np.testing.assert_allclose(np.asarray(gradient) / 24, golden[f"{name}/grad_{theirs}"], atol=5e-7)


@pytest.mark.parametrize("name", ["remove_hits", "keep_hits"])
def test_losses_by_position_match_tensorflow(golden, name):
    expected = golden["true_expected_count"][:, 0], golden["sampled_expected_count"]
    for position in (0, 5, 6, 21):
        (loss, _), _ = of_golden(golden, name == "remove_hits", expected, jnp.eye(24)[position])
        np.testing.assert_allclose(loss, golden[f"{name}/loss"][position], rtol=2e-6)


def test_only_the_rows_used_have_gradients(golden):
    expected = golden["true_expected_count"][:, 0], golden["sampled_expected_count"]
    _, (_, table, bias) = of_golden(golden, True, expected, jnp.ones(24))
    used = np.union1d(golden["labels"], golden["sampled"])
    assert set(np.flatnonzero(np.any(table, axis=1))) <= set(used)
    assert set(np.flatnonzero(bias)) <= set(used)


TABLE = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
BIAS = np.linspace(-1, 1, 50, dtype=np.float32)
HIDDEN = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def of_toy(hidden, targets, negatives, weights, remove_hits=True):
    expected = negatives.expected(targets), negatives.expected(negatives.ids)
    table = jnp.asarray(TABLE), jnp.asarray(BIAS)
    return sampled_softmax(hidden, *table, targets, negatives.ids, *expected, weights, remove_hits=remove_hits)


toy = jax.jit(of_toy, static_argnums=4)
toy_gradient = jax.jit(jax.value_and_grad(of_toy, has_aux=True))
nine = jax.jit(lambda: draw_negatives(jax.random.key(2), 9, 50))


def test_masked_positions_are_ignored():
    hidden, negatives = HIDDEN.copy(), nine()
    targets, weights = np.array([3, 4, 5, 6, 7, 8], np.int32), np.array([1, 0, 2, 0, 1, 0], np.float32)
    (total, weight), gradient = toy_gradient(hidden, targets, negatives, weights)
    part = toy(hidden[::2], targets[::2], negatives, weights[::2])[0]
    hidden[1::2], targets[1::2] = np.nan, -100
    (other, _), hostile_gradient = toy_gradient(hidden, targets, negatives, weights)
    assert total == other and weight == 4
    np.testing.assert_array_equal(gradient, hostile_gradient)
    np.testing.assert_allclose(part, total, rtol=1e-6)
    (nothing, _), zero = toy_gradient(hidden, targets, negatives, 0 * weights)
    assert nothing == 0 and not np.any(zero)


def test_loss_is_zero_if_every_negative_is_the_target():
    negatives = Negatives(jnp.array([7]), jnp.int32(1), 50)
    sevens, ones = np.full(6, 7, np.int32), np.ones(6, np.float32)
    (total, _), gradient = toy_gradient(HIDDEN, sevens, negatives, ones)
    assert total == 0 and np.array_equal(gradient, np.zeros((6, 4)))
    assert toy(HIDDEN, sevens, negatives, ones, False)[0] > 0


def test_targets_outside_give_nan_and_an_infinite_loss_of_word_0_does_not_affect_masked_positions():
    """Targets of weight zero become word 0, whose loss may be infinite."""
    bias, ones = np.where(np.arange(50) == 0, -np.inf, 0).astype(np.float32), np.ones(9, np.float32)
    loss = jax.jit(sampled_softmax)
    hidden, table, negatives = np.ones((2, 4), np.float32), np.ones((50, 4), np.float32), np.arange(10, 19)
    weights = np.array([1.0, 0.0], np.float32)
    for target, expected in ((3, np.log(10)), (50, np.nan), (-1, np.nan)):
        total, _ = loss(hidden, table, bias, np.array([target, 7]), negatives, ones[:2], ones, weights)
        np.testing.assert_allclose(total, expected, rtol=1e-6)


def test_all_other_words_as_negatives_equal_the_full_softmax():
    other_words, ones = np.delete(np.arange(50), 7), np.ones(49, np.float32)
    target = np.array([7])
    ours, _ = jax.jit(sampled_softmax)(HIDDEN[:1], TABLE, BIAS, target, other_words, ones[:1], ones, ones[:1])
    full = jax.jit(cross_entropy)(HIDDEN[:1] @ TABLE.T + BIAS[None], target, ones[:1])
    np.testing.assert_allclose(ours, full[0], rtol=1e-6)


def test_mean_gradient_matches_the_full_softmax():
    """With the correction by expected counts, the mean gradient equals the full softmax's."""
    words, hidden, target, one = 200, HIDDEN[1:2], jnp.array([3]), jnp.ones(1)
    table = jnp.asarray(0.3 * np.random.default_rng(5).normal(size=(words, 4)).astype(np.float32))
    bias = jnp.asarray((-0.5 * np.log(np.arange(1.0, words + 1))).astype(np.float32))

    def sampled(h, key, corrected):
        negatives = draw_negatives(key, 100, words)
        expected = jnp.where(corrected, negatives.expected(negatives.ids), jnp.ones(100))
        # The target is always present, so its expected count is 1.
        return sampled_softmax(h, table, bias, target, negatives.ids, one, expected, one)[0]

    mean = jax.jit(
        lambda keys, corrected: jax.vmap(lambda key: jax.grad(sampled)(hidden, key, corrected))(keys).mean(axis=0)
    )
    keys = jax.random.split(jax.random.key(2), 400)
    full = jax.jit(jax.grad(lambda h: cross_entropy(h @ table.T + bias[None], target, one)[0]))(hidden)
    off = {corrected: np.abs(mean(keys, corrected) - np.asarray(full)).max() for corrected in (True, False)}
    assert 8 * off[True] < 0.02 < off[False]


def test_bf16_hidden_keeps_float32_logits():
    targets, ones, negatives = np.arange(6, dtype=np.int32), np.ones(6, np.float32), nine()
    (total, _), gradient = toy_gradient(HIDDEN.astype(jnp.bfloat16), targets, negatives, ones)
    assert total.dtype == jnp.float32 and gradient.dtype == jnp.bfloat16
    np.testing.assert_allclose(total, toy(HIDDEN, targets, negatives, ones)[0], rtol=0.02)
