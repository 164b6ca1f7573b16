"""Label smoothing: values by hand, the limits of smoothing, masking, gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses import cross_entropy, smoothed_cross_entropy

pytestmark = pytest.mark.usefixtures("strict_dtypes")


@functools.partial(jax.jit, static_argnums=3)
def loss_and_gradient(logits, targets, weights, smoothing):
    loss = jax.value_and_grad(lambda x: smoothed_cross_entropy(x, targets, weights, smoothing), has_aux=True)
    return loss(logits)


def by_hand(logits, targets, weights, smoothing):
    """Compute the loss in float64 from the smoothed distribution, position by position."""
    total = 0.0
    for row, target, weight in zip(logits.astype(np.float64), targets, weights):
        if weight:
            log_p = row - np.log(np.exp(row).sum())
            distribution = np.full(len(row), smoothing / len(row))
            distribution[target] += 1 - smoothing
            total -= weight * (distribution * log_p).sum()
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_values_by_hand(smoothing):
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(0, 3, (9, 7)).astype(np.float32), rng.integers(0, 7, 9, np.int32)
    weights = rng.integers(0, 3, 9).astype(np.float32)
    logits[weights == 0], targets[weights == 0] = np.nan, -100
    (total, weight), _ = loss_and_gradient(logits, targets, weights, smoothing)
    np.testing.assert_allclose(total, by_hand(logits, targets, weights, smoothing), rtol=1e-6)
    assert weight == weights.sum() and total.dtype == jnp.float32
    if not smoothing:
        np.testing.assert_allclose(total, jax.jit(cross_entropy)(logits, targets, weights)[0], rtol=1e-6)
    (total, weight), gradient = loss_and_gradient(0 * logits + np.float32(np.nan), targets, 0 * weights, smoothing)
    assert total == weight == 0
    np.testing.assert_array_equal(gradient, 0)


def test_the_minimum_is_the_smoothed_distribution():
    smoothed = np.array([[0.1 / 7 + 0.9, *[0.1 / 7] * 6]] * 9, np.float32)
    _, gradient = loss_and_gradient(np.log(smoothed), np.zeros(9, np.int32), np.ones(9, np.float32), 0.1)
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_half_precision_is_computed_in_single():
    logits = np.zeros((9, 7), np.float32)
    logits[0, :3] = 256, 254, -256
    targets, weights = np.ones(9, np.int32), np.ones(9, np.float32)
    full, half = (loss_and_gradient(x, targets, weights, 0.1)[0] for x in (logits, logits.astype(jnp.bfloat16)))
    assert half[0].dtype == jnp.float32
    np.testing.assert_allclose(half[0], full[0], rtol=1e-6)
