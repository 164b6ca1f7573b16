"""Label smoothing: values by hand, the limits of smoothing, masking, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses import cross_entropy, smoothed_cross_entropy

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def by_hand(logits, targets, weights, smoothing):
    """Compute the loss in float64 from the smoothed distribution, position by position."""
    total = 0.0
    for row, target, weight in zip(logits.astype(np.float64), targets, weights):
        if weight:
            log_p = row - np.log(np.exp(row).sum())
            wanted = np.full(len(row), smoothing / len(row))
            wanted[target] += 1 - smoothing
            total -= weight * (wanted * log_p).sum()
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_values_by_hand(smoothing):
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(0, 3, (9, 7)).astype(np.float32), rng.integers(0, 7, 9)
    weights = rng.integers(0, 3, 9).astype(np.float32)
    logits[weights == 0], targets[weights == 0] = np.nan, -100
    total, weight = smoothed_cross_entropy(*map(jnp.asarray, (logits, targets, weights)), smoothing)
    np.testing.assert_allclose(total, by_hand(logits, targets, weights, smoothing), rtol=1e-6)
    assert weight == weights.sum() and total.dtype == jnp.float32


def test_without_smoothing_it_is_the_cross_entropy():
    logits, targets, weights = jnp.array([[1.0, -2.0, 0.5]]), jnp.array([2]), jnp.ones(1)
    plain = cross_entropy(logits, targets, weights)
    np.testing.assert_allclose(smoothed_cross_entropy(logits, targets, weights, 0.0), plain, rtol=1e-7)


def test_the_minimum_is_the_smoothed_distribution():
    wanted = jnp.array([0.3 / 4 + 0.7, 0.3 / 4, 0.3 / 4, 0.3 / 4])
    gradient = jax.grad(lambda z: smoothed_cross_entropy(z, jnp.array([0]), jnp.ones(1), 0.3)[0])
    np.testing.assert_allclose(gradient(jnp.log(wanted)[None]), 0, atol=1e-6)


def test_all_weights_zero_have_finite_gradients():
    def mean(logits):
        total, weight = smoothed_cross_entropy(logits, jnp.array([-100, 5]), jnp.zeros(2), 0.1)
        return total + weight

    value, gradient = jax.value_and_grad(mean)(jnp.full((2, 3), jnp.nan))
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


def test_half_precision_is_computed_in_single():
    logits = jnp.array([[256.0, 254.0, -256.0]])
    full = smoothed_cross_entropy(logits, jnp.array([1]), jnp.ones(1), 0.1)
    half = smoothed_cross_entropy(logits.astype(jnp.bfloat16), jnp.array([1]), jnp.ones(1), 0.1)
    assert half[0].dtype == jnp.float32
    np.testing.assert_allclose(half[0], full[0], rtol=1e-6)
