"""Tests of the losses between a model and its teacher: exact values, gradients, masking."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import losses

pytestmark = pytest.mark.usefixtures("strict_dtypes")

soft_cross_entropy = jax.jit(losses.soft_cross_entropy, static_argnames="temperature")
cosine_distance = jax.jit(losses.cosine_distance)
soft_gradient = jax.jit(jax.grad(lambda *arrays: losses.soft_cross_entropy(*arrays)[0]), static_argnums=3)
soft_gradient_of_teacher = jax.jit(
    jax.grad(lambda *arrays: losses.soft_cross_entropy(*arrays)[0], argnums=1), static_argnums=3
)


cosine_gradient = jax.jit(jax.grad(lambda *arrays: losses.cosine_distance(*arrays)[0]))


def draw(seed, *shape, width=7):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(0, 3, (2, *shape, width)).astype(np.float32)
    return ours, theirs, rng.integers(0, 3, shape).astype(np.float32)


def softmax(values):
    shares = np.exp(values.astype(np.float64))
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_soft_cross_entropy_by_hand(temperature):
    ours, theirs, weights = draw(0, 8)
    p, q = softmax(theirs / temperature), softmax(ours / temperature)
    expected = temperature**2 * (weights * -(p * np.log(q)).sum(-1)).sum(), weights.sum()
    loss_and_weight = soft_cross_entropy(ours, theirs, weights, temperature=temperature)
    np.testing.assert_allclose(loss_and_weight, expected, rtol=1e-5)
    assert loss_and_weight[0].dtype == loss_and_weight[1].dtype == jnp.float32


def test_soft_gradient_is_the_difference_of_both_softmaxes():
    """T² · (q − p) / T; the teacher has none."""
    ours, theirs, weights = draw(2, 8)
    expected = 2.0 * weights[:, None] * (softmax(ours / 2.0) - softmax(theirs / 2.0))
    np.testing.assert_allclose(soft_gradient(ours, theirs, weights, 2.0), expected, atol=1e-5)
    np.testing.assert_array_equal(soft_gradient_of_teacher(ours, theirs, weights, 2.0), 0)


def test_cosine_distance_by_hand():
    ours, theirs, weights = draw(3, 8)
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    expected = (weights * (1 - (ours * theirs).sum(-1) / norms)).sum(), weights.sum()
    np.testing.assert_allclose(cosine_distance(ours, theirs, weights), expected, rtol=1e-5)
    same = cosine_distance(ours, -2 * ours, weights)
    np.testing.assert_allclose(same[0], 2 * same[1], rtol=1e-6)


def test_cosine_gradient_against_differences():
    ours, theirs, weights = (a.astype(np.float64) for a in draw(4, 8))
    gradient = np.asarray(cosine_gradient(*(a.astype(np.float32) for a in (ours, theirs, weights))))

    def distance(hidden):
        norms = np.linalg.norm(hidden, axis=-1) * np.linalg.norm(theirs, axis=-1)
        return (weights * (1 - (hidden * theirs).sum(-1) / norms)).sum()

    for place in np.ndindex(ours.shape):
        step = np.zeros_like(ours)
        step[place] = 1e-5
        expected = (distance(ours + step) - distance(ours - step)) / 2e-5
        np.testing.assert_allclose(gradient[place], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["soft", "cosine"])
def test_masked_equals_subset(name):
    ours, theirs, _ = draw(5, 8)
    weights = np.array([0, 1, 0, 0.5, 1, 0, 0, 1], np.float32)
    ours[weights == 0], theirs[weights == 0] = np.nan, np.inf
    loss, gradient = {"soft": (soft_cross_entropy, soft_gradient), "cosine": (cosine_distance, cosine_gradient)}[name]
    more = (2.0,) if name == "soft" else ()

    def of(keep):
        arrays = [a[keep] for a in (ours, theirs, weights)]
        return loss(*arrays, *more), gradient(*arrays, *more)

    everything, subset = of(np.full(8, True)), of(weights > 0)
    np.testing.assert_allclose(everything[0], subset[0], rtol=1e-6)
    np.testing.assert_allclose(everything[1][weights > 0], subset[1], rtol=1e-5)
    np.testing.assert_array_equal(everything[1][weights == 0], 0)


def test_zero_weights_and_vectors_have_finite_gradients():
    nan, zero = np.full((8, 7), np.nan, np.float32), np.zeros(8, np.float32)
    assert soft_cross_entropy(nan, nan, zero, temperature=1.0) == cosine_distance(nan, nan, zero) == (0, 0)
    np.testing.assert_array_equal(soft_gradient(nan, nan, zero, 2.0), 0)
    np.testing.assert_array_equal(cosine_gradient(nan, nan, zero), 0)
    ones = np.ones((8, 7), np.float32)
    assert cosine_distance(0 * ones, ones, ones[:, 0]) == (8, 8)  # a vector of zeros has the distance 1
    assert np.isfinite(cosine_gradient(0 * ones, ones, ones[:, 0])).all()


def test_bf16_is_summed_in_float32():
    ours, theirs, weights = draw(6, 8)
    low = ours.astype(jnp.bfloat16), theirs.astype(jnp.bfloat16)
    high = [a.astype(np.float32) for a in low]
    assert soft_cross_entropy(*low, weights, temperature=2.0) == soft_cross_entropy(*high, weights, temperature=2.0)
    assert cosine_distance(*low, weights) == cosine_distance(*high, weights)
