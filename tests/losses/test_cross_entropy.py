"""Tests of cross entropies and accuracy: exact values, masking, invalid positions, bfloat16."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_elmo_jax import losses
from bert_elmo_jax.losses.cross_entropy import inside

pytestmark = pytest.mark.usefixtures("strict_dtypes")

# Compiled once per shape; one test runs it without jit.
cross_entropy, accuracy = jax.jit(losses.cross_entropy), jax.jit(losses.accuracy)
gradient_of = jax.jit(jax.grad(lambda *arrays: losses.cross_entropy(*arrays)[0]))


def by_hand(logits, targets, weights):
    """Compute the loss in float64, position by position."""
    total = 0.0
    for row, target, weight in zip(logits.reshape(-1, logits.shape[-1]), targets.ravel(), weights.ravel()):
        if weight:
            total += weight * (np.log(np.exp(row.astype(np.float64)).sum()) - row[target])
    return total, weights.sum()


def draw(seed, *shape, vocabulary=11):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (*shape, vocabulary)).astype(np.float32)
    return logits, rng.integers(0, vocabulary, shape), rng.integers(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4)])
def test_matches_float64(shape):
    logits, targets, weights = draw(0, *shape)
    total, weight = cross_entropy(*map(jnp.asarray, (logits, targets, weights)))
    expected = by_hand(logits, targets, weights)
    np.testing.assert_allclose([total, weight], expected, rtol=1e-6)
    assert total.dtype == weight.dtype == jnp.float32


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_masked_equals_subset(seed):
    logits, targets, weights = draw(seed, 12)
    weights = np.random.default_rng(seed).permutation(np.repeat([0, 0.5, 1], [6, 3, 3])).astype(np.float32)
    logits[weights == 0], targets[weights == 0] = np.nan, -100

    def of(keep):
        arrays = [jnp.asarray(a[keep]) for a in (logits, targets, weights)]
        return cross_entropy(*arrays)[0], gradient_of(*arrays), accuracy(*arrays)

    everything, subset = of(np.full(12, True)), of(weights > 0)
    np.testing.assert_allclose(everything[0], subset[0], rtol=1e-6)
    np.testing.assert_allclose(everything[1][weights > 0], subset[1], rtol=1e-6)
    np.testing.assert_array_equal(everything[1][weights == 0], 0)
    np.testing.assert_array_equal(everything[2], subset[2])


def test_zero_weights_give_zero_with_finite_gradients():
    logits, targets, weights = jnp.full((2, 3, 5), jnp.nan), jnp.full((2, 3), -1), jnp.zeros((2, 3))
    total, weight = losses.cross_entropy(logits, targets, weights)
    assert total == 0 and weight == 0
    gradient = gradient_of(logits, targets, weights)
    np.testing.assert_array_equal(gradient, 0)
    assert accuracy(logits, targets, weights) == (0, 0)


def test_gradient_is_softmax_minus_target():
    logits, targets, weights = draw(3, 6)
    gradient = gradient_of(*map(jnp.asarray, (logits, targets, weights)))
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient, weights[:, None] * (shares - np.eye(11)[targets]), atol=1e-6)


def test_bf16_logits_are_summed_in_float32():
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(0, 3, (4, 30_000)), jnp.bfloat16)
    targets, weights = jnp.asarray(rng.integers(0, 30_000, 4)), jnp.ones(4)
    exact = by_hand(np.asarray(logits.astype(jnp.float32)), np.asarray(targets), np.asarray(weights))
    np.testing.assert_allclose(cross_entropy(logits, targets, weights)[0], exact[0], rtol=1e-6)
    assert gradient_of(logits, targets, weights).dtype == jnp.bfloat16


def test_large_logits_do_not_overflow():
    total, _ = cross_entropy(jnp.array([[1e30, 0.0], [0.0, -1e30]]), jnp.array([0, 1]), jnp.ones(2))
    assert total == 1e30


@pytest.mark.parametrize("target", [-1, -100, 5, 2**31 - 1])
def test_targets_outside_the_vocabulary_give_nan(target):
    assert np.isnan(cross_entropy(jnp.zeros((1, 5)), jnp.array([target]), jnp.ones(1))[0])
    assert accuracy(jnp.zeros((1, 5)), jnp.array([target]), jnp.ones(1)) == (0, 1)


def test_integer_weights():
    assert cross_entropy(jnp.zeros((2, 4)), jnp.array([0, 1]), jnp.array([1, 0]))[1] == 1


def test_accuracy_by_hand():
    logits = jnp.array([[[0.1, 0.9, 0.0], [3.0, 1.0, 2.0]], [[0.0, 0.0, 1.0], [5.0, 0.0, 0.0]]])
    right, weight = accuracy(logits, jnp.array([[1, 2], [2, 0]]), jnp.array([[1.0, 1.0], [0.5, 0.0]]))
    assert (right, weight) == (1.5, 2.5)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([jnp.float32, jnp.bfloat16]))
def test_accuracy_takes_the_first_of_ties(seed, dtype):
    rng = np.random.default_rng(seed)
    logits = rng.integers(-2, 2, (40, 7)).astype(np.float32)  # few values, so that most rows have ties
    targets, weights = rng.integers(0, 7, 40), rng.integers(0, 3, 40).astype(np.float32)
    right, weight = accuracy(jnp.asarray(logits, dtype), jnp.asarray(targets), jnp.asarray(weights))
    assert (right, weight) == (weights[logits.argmax(-1) == targets].sum(), weights.sum())


def test_nan_logits_are_not_right():
    logits = jnp.array([[jnp.nan, 1.0], [jnp.nan, 1.0], [-jnp.inf, -jnp.inf]])
    assert accuracy(logits, jnp.array([0, 1, 0]), jnp.ones(3)) == (1, 3)


def test_sums_of_parts_equal_one_batch():
    logits, targets, weights = (jnp.asarray(a) for a in draw(5, 8))
    parts = [cross_entropy(logits[i::2], targets[i::2], weights[i::2]) for i in range(2)]
    np.testing.assert_allclose(np.sum(parts, axis=0), cross_entropy(logits, targets, weights), rtol=1e-6)


def test_example_of_inside():
    assert inside(jnp.array([2, -100, -1, 9]), jnp.array([True, False, True, True]), 3).tolist() == [2, 0, 3, 3]


def test_binary_cross_entropy_matches_float64_and_ignores_weight_zero():
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(0, 5, (4, 6)).astype(np.float32), rng.random((4, 6)) < 0.5
    weights = rng.integers(0, 3, (4, 6)).astype(np.float32)
    wide = logits.astype(np.float64)
    expected = (weights * np.logaddexp(0, np.where(targets, -wide, wide))).sum(), weights.sum()
    logits[weights == 0] = np.nan
    given = jnp.asarray(logits), jnp.asarray(targets), jnp.asarray(weights)
    np.testing.assert_allclose(losses.binary_cross_entropy(*given), expected, rtol=1e-6)
    gradient = jax.grad(lambda *arrays: losses.binary_cross_entropy(*arrays)[0])(*given)
    slope = weights * (1 / (1 + np.exp(-wide)) - targets)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)


def test_binary_cross_entropy_of_sure_logits_is_finite():
    given = jnp.array([100.0, -100.0, -1e4]), jnp.array([True, False, True]), jnp.array([True, True, True])
    np.testing.assert_allclose(losses.binary_cross_entropy(*given), (1e4, 3))
