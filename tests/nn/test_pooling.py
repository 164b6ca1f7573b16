"""Tests of pooling and alignment over real positions, also in rows without any."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import align
from bert_elmo_jax.nn.pooling import masked_softmax, max_pool, mean_pool, min_pool

pytestmark = pytest.mark.usefixtures("strict_dtypes")
POOLS = {"mean": (mean_pool, np.mean), "max": (max_pool, np.max), "min": (min_pool, np.min)}
REAL = np.arange(5)[None, :] < np.array([5, 1, 3, 0])[:, None]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("shift", [-7.0, 0.0, 7.0])  # a maximum below 0, a minimum above 0
def test_pooling_over_real_positions(name, shift):
    pool, expected = POOLS[name]
    x = draw(4, 5, 3) + np.float32(shift)
    pooled = pool(jnp.asarray(x), jnp.asarray(REAL))
    for n, count in enumerate((5, 1, 3)):
        np.testing.assert_allclose(pooled[n], expected(x[n, :count], axis=0), rtol=1e-5)
    np.testing.assert_array_equal(pooled[3], 0)
    wild = np.where(REAL[..., None], x, 1e20).astype(np.float32)
    np.testing.assert_array_equal(pool(jnp.asarray(wild), jnp.asarray(REAL)), pooled)
    gradient = jax.grad(lambda x: pool(x, jnp.asarray(REAL)).sum())(jnp.asarray(x))
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(np.asarray(gradient)[~REAL], 0)
    np.testing.assert_allclose(gradient[:3].sum(axis=1), 1.0, rtol=1e-5)


def test_masked_softmax_over_real_positions():
    scores = draw(4, 5) * 30
    shares = np.asarray(masked_softmax(jnp.asarray(scores), jnp.asarray(REAL)))
    for n, count in enumerate((5, 1, 3)):
        odds = np.exp(scores[n, :count] - scores[n, :count].max())
        np.testing.assert_allclose(shares[n, :count], odds / odds.sum(), rtol=1e-5)
    np.testing.assert_array_equal(shares[~REAL], 0)
    gradient = jax.grad(lambda s: (masked_softmax(s, jnp.asarray(REAL)) ** 2).sum())(jnp.asarray(scores))
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(np.asarray(gradient)[~REAL], 0)


def test_align():
    x, other = draw(4, 2, 3), draw(4, 5, 3, seed=1)
    aligned = np.asarray(align(jnp.asarray(x), jnp.asarray(other), jnp.asarray(REAL)))
    for n, count in enumerate((5, 1, 3)):
        odds = np.exp(x[n] @ other[n, :count].T)
        np.testing.assert_allclose(aligned[n], odds / odds.sum(axis=1, keepdims=True) @ other[n, :count], rtol=1e-4)
    np.testing.assert_array_equal(aligned[3], 0)
    # With dot products of about a thousand, the nearest position takes all the weight.
    far = np.asarray(align(jnp.asarray(x) * 1e3, jnp.asarray(other), jnp.asarray(REAL)))
    nearest = np.argmax(np.where(REAL[:, None, :], np.einsum("bsd,btd->bst", x, other), -np.inf), axis=2)[:3]
    np.testing.assert_allclose(far[:3], np.take_along_axis(other[:3], nearest[..., None], axis=1), atol=1e-3)
