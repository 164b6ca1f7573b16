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

# Compiled once per shape.
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
    return logits, rng.integers(0, vocabulary, shape, np.int32), rng.integers(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(12,), (3, 5), (2, 3, 4)])
def test_matches_float64(shape):
    logits, targets, weights = draw(0, *shape)
    total, weight = cross_entropy(logits, targets, weights)
    np.testing.assert_allclose([total, weight], by_hand(logits, targets, weights), rtol=1e-6)
    assert total.dtype == weight.dtype == jnp.float32


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_masked_equals_subset(seed):
    logits, targets, weights = draw(seed, 12)
    weights = np.random.default_rng(seed).permutation(np.repeat([0, 0.5, 1], [6, 3, 3])).astype(np.float32)
    logits[weights == 0], targets[weights == 0] = np.nan, -100

    def of(keep):
        arrays = [a[keep] for a in (logits, targets, weights)]
        return cross_entropy(*arrays)[0], gradient_of(*arrays), accuracy(*arrays)

    everything, subset = of(np.full(12, True)), of(weights > 0)
    np.testing.assert_allclose(everything[0], subset[0], rtol=1e-6)
    np.testing.assert_allclose(everything[1][weights > 0], subset[1], rtol=1e-6)
    np.testing.assert_array_equal(everything[1][weights == 0], 0)
    np.testing.assert_array_equal(everything[2], subset[2])


def test_zero_weights_give_zero_with_finite_gradients():
    logits, targets = np.full((3, 5, 11), np.nan, np.float32), np.full((3, 5), -1)
    weights = np.zeros((3, 5), np.float32)
    assert cross_entropy(logits, targets, weights) == (0, 0)
    np.testing.assert_array_equal(gradient_of(logits, targets, weights), 0)
    assert accuracy(logits, targets, weights) == (0, 0)


def test_gradient_is_softmax_minus_target():
    logits, targets, weights = draw(3, 12)
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = weights[:, None] * (shares - np.eye(11)[targets])
    np.testing.assert_allclose(gradient_of(logits, targets, weights), expected, atol=1e-6)


def test_bf16_logits_are_summed_in_float32():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (4, 30_000)).astype(jnp.bfloat16)
    targets, weights = rng.integers(0, 30_000, 4, np.int32), np.ones(4, np.float32)
    exact = by_hand(logits.astype(np.float32), targets, weights)
    np.testing.assert_allclose(cross_entropy(logits, targets, weights)[0], exact[0], rtol=1e-6)
    assert gradient_of(logits, targets, weights).dtype == jnp.bfloat16


def test_large_logits_targets_outside_and_integer_weights():
    large = np.zeros((12, 11), np.float32)
    large[0, 0], large[1, 1] = 1e30, -1e30
    weights = (np.arange(12) < 2).astype(np.float32)
    assert cross_entropy(large, np.arange(12) % 11, weights)[0] == np.float32(1e30)  # they do not overflow
    for target in (-1, -100, 11, 2**31 - 1):
        targets, first = np.full(12, target, np.int32), (np.arange(12) < 1).astype(np.float32)
        assert np.isnan(cross_entropy(0 * large, targets, first)[0])
        assert accuracy(0 * large, targets, first) == (0, 1)
    assert cross_entropy(0 * large, np.zeros(12, np.int32), np.arange(12) % 2)[1] == 6


def test_accuracy_by_hand_and_of_nan():
    logits = np.array([[[0.1, 0.9, 0.0], [3.0, 1.0, 2.0]], [[0.0, 0.0, 1.0], [5.0, 0.0, 0.0]]], np.float32)
    targets, weights = np.array([[1, 2], [2, 0]]), np.array([[1.0, 1.0], [0.5, 0.0]], np.float32)
    assert accuracy(logits, targets, weights) == (1.5, 2.5)
    logits = np.array([[np.nan, 1.0], [np.nan, 1.0], [-np.inf, -np.inf]], np.float32)
    assert accuracy(logits, np.array([0, 1, 0]), np.ones(3, np.float32)) == (1, 3)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([jnp.float32, jnp.bfloat16]))
def test_accuracy_takes_the_first_of_ties(seed, dtype):
    rng = np.random.default_rng(seed)
    logits = rng.integers(-2, 2, (40, 7)).astype(np.float32)  # few values, so that most rows have ties
    targets, weights = rng.integers(0, 7, 40, np.int32), rng.integers(0, 3, 40).astype(np.float32)
    right, weight = accuracy(logits.astype(dtype), targets, weights)
    assert (right, weight) == (weights[logits.argmax(-1) == targets].sum(), weights.sum())


def test_sums_of_parts_equal_one_batch():
    logits, targets, weights = draw(5, 24)
    parts = [cross_entropy(logits[i::2], targets[i::2], weights[i::2]) for i in range(2)]
    np.testing.assert_allclose(np.sum(parts, axis=0), by_hand(logits, targets, weights), rtol=1e-6)
    assert inside(jnp.array([2, -100, -1, 9]), jnp.array([True, False, True, True]), 3).tolist() == [2, 0, 3, 3]


def test_binary_cross_entropy_matches_float64_and_ignores_weight_zero():
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(0, 5, (4, 6)).astype(np.float32), rng.random((4, 6)) < 0.5
    logits[0, :2], targets[0, :2] = (-1e4, 100), (True, False)  # sure ones are finite
    weights = rng.integers(0, 3, (4, 6)).astype(np.float32)
    wide = logits.astype(np.float64)
    expected = (weights * np.logaddexp(0, np.where(targets, -wide, wide))).sum(), weights.sum()
    logits[weights == 0] = np.nan
    both = jax.jit(jax.value_and_grad(losses.binary_cross_entropy, has_aux=True))
    (total, weight), gradient = both(logits, targets, weights)
    np.testing.assert_allclose((total, weight), expected, rtol=1e-6)
    with np.errstate(over="ignore"):
        slope = weights * (1 / (1 + np.exp(-wide)) - targets)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)
