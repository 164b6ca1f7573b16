"""Losses of sentence vectors: values by hand, slopes, and examples without weight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses.similarity import cosines, in_batch_loss, score_loss, triplet_loss, unit

DRAW = np.random.default_rng(0)
A, P, N = (jnp.asarray(DRAW.normal(size=(5, 4)), jnp.float32) for _ in range(3))
SCORES = jnp.asarray(DRAW.uniform(size=5), jnp.float32)
WEIGHTS = jnp.array([1.0, 0.0, 2.0, 1.0, 0.0])
COPIES = jnp.zeros((5, 10), bool).at[0, 3].set(True).at[2, 9].set(True)

LOSSES = {
    "in_batch": lambda a, p, n, s, w, c: in_batch_loss(a, p, w, excluded=c[:, : len(a)]),
    "in_batch with negatives": lambda a, p, n, s, w, c: in_batch_loss(a, p, w, n, scale=5.0, excluded=c),
    "triplets": lambda a, p, n, s, w, c: triplet_loss(a, p, n, w),
    "scores": lambda a, p, n, s, w, c: score_loss(a, p, s, w),
}


def in_float64(name):
    """Return the loss by its definition, one example after the other."""
    a, p, n = (np.asarray(x, np.float64) for x in (A, P, N))
    u, v, far = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, p, n))
    weights, total = np.asarray(WEIGHTS, np.float64), 0.0
    for i in np.flatnonzero(weights):
        if name == "scores":
            found = (u[i] @ v[i] - float(SCORES[i])) ** 2
        elif name == "triplets":
            found = max(0.0, np.linalg.norm(a[i] - p[i]) - np.linalg.norm(a[i] - n[i]) + 1.0)
        else:
            scale, others = (20.0, v) if name == "in_batch" else (5.0, np.concatenate([v, far]))
            real = np.tile(weights > 0, len(others) // 5) & ~np.asarray(COPIES)[i, : len(others)]
            scores = scale * others @ u[i]
            found = np.log(np.exp(scores[real]).sum()) - scores[i]
        total += weights[i] * found
    return total


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_slopes(strict_dtypes, name):
    def total(a, p, n):
        return LOSSES[name](a, p, n, SCORES, WEIGHTS, COPIES)[0]

    found, weight = LOSSES[name](A, P, N, SCORES, WEIGHTS, COPIES)
    assert float(weight) == 4.0
    np.testing.assert_allclose(found, in_float64(name), rtol=1e-5)
    slopes = jax.grad(total, argnums=(0, 1, 2))(A, P, N)
    way = [jnp.asarray(DRAW.normal(size=x.shape), jnp.float32) for x in (A, P, N)]
    step = 1e-3
    ahead, behind = (total(*(x + sign * step * w for x, w in zip((A, P, N), way))) for sign in (1, -1))
    expected = sum(float(jnp.vdot(slope, w)) for slope, w in zip(slopes, way))
    assert (float(ahead) - float(behind)) / (2 * step) == pytest.approx(expected, rel=2e-2, abs=1e-2)


@pytest.mark.parametrize("name", LOSSES)
def test_masked_equals_subset(name):
    kept = np.flatnonzero(WEIGHTS)
    broken = [x.at[jnp.array([1, 4])].set(jnp.nan) for x in (A, P, N, SCORES)]
    some = [x[kept] for x in (A, P, N, SCORES, WEIGHTS)]
    copies = COPIES[kept][:, np.concatenate([kept, kept + 5])]
    whole, part = LOSSES[name](*broken, WEIGHTS, COPIES), LOSSES[name](*some, copies)
    np.testing.assert_allclose(whole, part, rtol=1e-6)
    slope = jax.grad(lambda a: LOSSES[name](a, *broken[1:], WEIGHTS, COPIES)[0])(broken[0])
    expected = jax.grad(lambda a: LOSSES[name](a, *some[1:], copies)[0])(some[0])
    np.testing.assert_allclose(slope[kept], expected, rtol=1e-4, atol=1e-6)
    assert not np.asarray(slope)[[1, 4]].any()


@pytest.mark.parametrize("name", LOSSES)
def test_without_weight_all_is_zero_and_finite(name):
    nothing = jnp.zeros(5)
    slope = jax.grad(lambda a: LOSSES[name](a, a, a, SCORES, nothing, COPIES)[0])(A)
    assert np.array_equal(LOSSES[name](A, P, N, SCORES, nothing, COPIES), (0.0, 0.0)) and not slope.any()
    equal = jax.grad(lambda a: LOSSES[name](a, jnp.array(A), A, SCORES, WEIGHTS, COPIES)[0])(A)
    zeros = jax.grad(lambda a: LOSSES[name](a, a, a, SCORES, WEIGHTS, COPIES)[0])(A * 0)
    assert np.isfinite(equal).all() and np.isfinite(zeros).all()


def test_unit_vectors_of_large_and_zero_ones():
    assert cosines(A * 1e4, A)[0] == pytest.approx(1, abs=1e-6)
    assert not jax.grad(lambda x: unit(x).sum())(jnp.zeros((1, 3))).any()
