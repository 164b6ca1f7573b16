"""Losses of sentence vectors: values by hand, slopes, and examples without weight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.losses.similarity import cosent_loss, cosines, in_batch_loss, score_loss, triplet_loss, unit

from ..conftest import GOLDENS

DRAW = np.random.default_rng(0)
A, P, N = (DRAW.normal(size=(5, 4)).astype(np.float32) for _ in range(3))
SCORES = DRAW.uniform(size=5).astype(np.float32)
WEIGHTS = np.array([1, 0, 2, 1, 0], np.float32)
COPIES = np.zeros((5, 10), bool)
COPIES[0, 3] = COPIES[2, 9] = True

LOSSES = {
    "in_batch": lambda a, p, n, s, w, c: in_batch_loss(a, p, w, excluded=c[:, : len(a)]),
    "in_batch with negatives": lambda a, p, n, s, w, c: in_batch_loss(a, p, w, n, scale=5.0, excluded=c),
    "both ways": lambda a, p, n, s, w, c: in_batch_loss(a, p, w, n, scale=5.0, both_ways=True, excluded=c),
    "cosent": lambda a, p, n, s, w, c: cosent_loss(a, p, s, w, scale=5.0),
    "triplets": lambda a, p, n, s, w, c: triplet_loss(a, p, n, w),
    "scores": lambda a, p, n, s, w, c: score_loss(a, p, s, w),
}
# Compiled once per shape: the loss, its weight, and the gradients of the first three arguments.
COMPILED = {name: jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)) for name, loss in LOSSES.items()}


def in_float64(name):
    """Return the loss by its definition, one example after the other."""
    a, p, n = (np.asarray(x, np.float64) for x in (A, P, N))
    u, v, far = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, p, n))
    weights, total = np.asarray(WEIGHTS, np.float64), 0.0
    if name == "cosent":
        cosine, real = 5.0 * (u * v).sum(axis=1), np.flatnonzero(weights)
        apart = [np.exp(cosine[i] - cosine[j]) for i in real for j in real if SCORES[i] < SCORES[j]]
        return weights.sum() * np.log1p(sum(apart))
    for i in np.flatnonzero(weights):
        if name == "scores":
            loss = (u[i] @ v[i] - float(SCORES[i])) ** 2
        elif name == "triplets":
            loss = max(0.0, np.linalg.norm(a[i] - p[i]) - np.linalg.norm(a[i] - n[i]) + 1.0)
        else:
            scale, candidates = (20.0, v) if name == "in_batch" else (5.0, np.concatenate([v, far]))
            real = np.tile(weights > 0, len(candidates) // 5) & ~np.asarray(COPIES)[i, : len(candidates)]
            scores = scale * candidates @ u[i]
            loss = np.log(np.exp(scores[real]).sum()) - scores[i]
            if name == "both ways":
                anchors = (weights > 0) & ~np.asarray(COPIES)[:, i]
                loss = (loss + np.log(np.exp(scale * u[anchors] @ v[i]).sum()) - scores[i]) / 2
        total += weights[i] * loss
    return total


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_slopes(strict_dtypes, name):
    def total(*vectors):
        return float(COMPILED[name](*vectors, SCORES, WEIGHTS, COPIES)[0][0])

    (loss, weight), slopes = COMPILED[name](A, P, N, SCORES, WEIGHTS, COPIES)
    assert float(weight) == 4.0
    np.testing.assert_allclose(loss, in_float64(name), rtol=1e-5)
    direction = [DRAW.normal(size=x.shape).astype(np.float32) for x in (A, P, N)]
    step = np.float32(1e-3)
    ahead, behind = (total(*(x + sign * step * d for x, d in zip((A, P, N), direction))) for sign in (1, -1))
    expected = sum(float(np.vdot(slope, d)) for slope, d in zip(slopes, direction))
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=2e-2, abs=1e-2)


@pytest.mark.parametrize("name", LOSSES)
def test_masked_equals_subset(name):
    rows = np.flatnonzero(WEIGHTS)
    broken = [np.array(x) for x in (A, P, N, SCORES)]
    for array in broken:
        array[[1, 4]] = np.nan
    subset = [x[rows] for x in (A, P, N, SCORES, WEIGHTS)]
    masked, (slope, *_) = COMPILED[name](*broken, WEIGHTS, COPIES)
    part, (expected, *_) = COMPILED[name](*subset, COPIES[rows][:, np.concatenate([rows, rows + 5])])
    np.testing.assert_allclose(masked, part, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(slope)[rows], expected, rtol=1e-4, atol=1e-6)
    assert not np.asarray(slope)[[1, 4]].any()


GOLDEN = dict(np.load(GOLDENS / "sentence_losses.npz"))
OF_SENTENCE_TRANSFORMERS = {
    "MultipleNegativesRankingLoss": lambda a, p, n, s: in_batch_loss(a, p, jnp.ones(len(a)), n),
    "MultipleNegativesSymmetricRankingLoss": lambda a, p, n, s: in_batch_loss(a, p, jnp.ones(len(a)), both_ways=True),
    "CoSENTLoss": lambda a, p, n, s: cosent_loss(a, p, s, jnp.ones(len(a))),
    "TripletLoss": lambda a, p, n, s: triplet_loss(a, p, n, jnp.ones(len(a)), margin=5.0),
    "CosineSimilarityLoss": lambda a, p, n, s: score_loss(a, p, s, jnp.ones(len(a))),
}


@pytest.mark.parametrize("name", OF_SENTENCE_TRANSFORMERS)
def test_values_and_gradients_are_those_of_sentence_transformers(name):
    """Equal scores and repeated texts are in the golden; its file is made by tests/goldens/make_sentence_losses.py."""
    loss = OF_SENTENCE_TRANSFORMERS[name]

    def mean(*vectors):
        total, weight = loss(*vectors, jnp.asarray(GOLDEN["scores"]))
        return total / weight

    arrays = [jnp.asarray(GOLDEN[part]) for part in ("anchors", "positives", "negatives")]
    value, gradients = jax.jit(jax.value_and_grad(mean, argnums=(0, 1, 2)))(*arrays)
    np.testing.assert_allclose(value, GOLDEN[f"{name}/loss"], rtol=1e-5)
    for part, gradient in zip(("anchors", "positives", "negatives"), gradients):
        expected = GOLDEN.get(f"{name}/{part}", np.zeros_like(gradient))
        np.testing.assert_allclose(gradient, expected, atol=1e-5 * max(np.abs(expected).max(), 1e-3))


@pytest.mark.parametrize("name", LOSSES)
def test_without_weight_all_is_zero_and_finite(name):
    loss_and_weight, slopes = COMPILED[name](A, A, A, SCORES, 0 * WEIGHTS, COPIES)
    assert np.array_equal(loss_and_weight, (0.0, 0.0)) and not any(np.asarray(slope).any() for slope in slopes)
    for vectors in (A, A * 0):
        _, slopes = COMPILED[name](vectors, vectors, vectors, SCORES, WEIGHTS, COPIES)
        assert all(np.isfinite(slope).all() for slope in slopes)


def test_unit_vectors_of_large_and_zero_ones():
    assert jax.jit(cosines)(A * np.float32(1e4), A)[0] == pytest.approx(1, abs=1e-6)
    assert not jax.jit(jax.grad(lambda x: unit(x).sum()))(np.zeros((1, 3), np.float32)).any()
