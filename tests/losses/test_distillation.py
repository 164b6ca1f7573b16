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
soft_gradient_of_teacher = jax.grad(lambda *arrays: losses.soft_cross_entropy(*arrays)[0], argnums=1)
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
    ours, theirs, weights = draw(0, 3, 5)
    p, q = softmax(theirs / temperature), softmax(ours / temperature)
    expected = temperature**2 * (weights * -(p * np.log(q)).sum(-1)).sum(), weights.sum()
    found = soft_cross_entropy(*map(jnp.asarray, (ours, theirs, weights)), temperature=temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[0].dtype == found[1].dtype == jnp.float32


def test_soft_cross_entropy_of_a_certain_teacher_is_cross_entropy():
    ours, _, weights = draw(1, 6)
    targets = np.arange(6)
    certain = np.float32(1e4) * np.eye(7, dtype=np.float32)[targets]
    soft = soft_cross_entropy(*map(jnp.asarray, (ours, certain, weights)), temperature=1.0)
    np.testing.assert_allclose(soft, losses.cross_entropy(*map(jnp.asarray, (ours, targets, weights))), rtol=1e-6)


def test_soft_gradient_is_the_difference_of_both_softmaxes():
    """T² · (q − p) / T; the teacher has none."""
    ours, theirs, weights = draw(2, 6)
    arrays = [jnp.asarray(a) for a in (ours, theirs, weights)]
    expected = 2.0 * weights[:, None] * (softmax(ours / 2.0) - softmax(theirs / 2.0))
    np.testing.assert_allclose(soft_gradient(*arrays, 2.0), expected, atol=1e-5)
    np.testing.assert_array_equal(soft_gradient_of_teacher(*arrays, 2.0), 0)


def test_cosine_distance_by_hand():
    ours, theirs, weights = draw(3, 2, 4)
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    expected = (weights * (1 - (ours * theirs).sum(-1) / norms)).sum(), weights.sum()
    np.testing.assert_allclose(cosine_distance(*map(jnp.asarray, (ours, theirs, weights))), expected, rtol=1e-5)
    same = cosine_distance(jnp.asarray(ours), jnp.asarray(-2 * ours), jnp.asarray(weights))
    np.testing.assert_allclose(same[0], 2 * same[1], rtol=1e-6)


def test_cosine_gradient_against_differences():
    ours, theirs, weights = (a.astype(np.float64) for a in draw(4, 3))
    found = cosine_gradient(*(jnp.asarray(a, jnp.float32) for a in (ours, theirs, weights)))

    def distance(hidden):
        norms = np.linalg.norm(hidden, axis=-1) * np.linalg.norm(theirs, axis=-1)
        return (weights * (1 - (hidden * theirs).sum(-1) / norms)).sum()

    for place in np.ndindex(ours.shape):
        step = np.zeros_like(ours)
        step[place] = 1e-5
        expected = (distance(ours + step) - distance(ours - step)) / 2e-5
        np.testing.assert_allclose(found[place], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["soft", "cosine"])
def test_masked_equals_subset(name):
    ours, theirs, _ = draw(5, 8)
    weights = np.array([0, 1, 0, 0.5, 1, 0, 0, 1], np.float32)
    ours[weights == 0], theirs[weights == 0] = np.nan, np.inf
    loss, gradient = {"soft": (soft_cross_entropy, soft_gradient), "cosine": (cosine_distance, cosine_gradient)}[name]
    more = (2.0,) if name == "soft" else ()

    def of(keep):
        arrays = [jnp.asarray(a[keep]) for a in (ours, theirs, weights)]
        return loss(*arrays, *more), gradient(*arrays, *more)

    everything, subset = of(np.full(8, True)), of(weights > 0)
    np.testing.assert_allclose(everything[0], subset[0], rtol=1e-6)
    np.testing.assert_allclose(everything[1][weights > 0], subset[1], rtol=1e-5)
    np.testing.assert_array_equal(everything[1][weights == 0], 0)


def test_zero_weights_give_zero_with_finite_gradients():
    nothing = jnp.full((2, 3, 5), jnp.nan), jnp.full((2, 3, 5), jnp.nan), jnp.zeros((2, 3))
    assert losses.soft_cross_entropy(*nothing, 1.0) == losses.cosine_distance(*nothing) == (0, 0)
    np.testing.assert_array_equal(soft_gradient(*nothing, 1.0), 0)
    np.testing.assert_array_equal(cosine_gradient(*nothing), 0)


def test_a_vector_of_zeros_has_the_distance_1():
    zeros = jnp.zeros((1, 4)), jnp.ones((1, 4)), jnp.ones(1)
    assert losses.cosine_distance(*zeros) == (1, 1)
    assert np.isfinite(cosine_gradient(*zeros)).all()


def test_bf16_is_summed_in_float32():
    ours, theirs, weights = (jnp.asarray(a) for a in draw(6, 4))
    low = ours.astype(jnp.bfloat16), theirs.astype(jnp.bfloat16)
    for loss, more in ((losses.soft_cross_entropy, (2.0,)), (losses.cosine_distance, ())):
        high = [a.astype(jnp.float32) for a in low]
        assert loss(*low, weights, *more) == loss(*high, weights, *more)
