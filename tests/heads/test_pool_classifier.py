"""The pooling classifier: pools part by part, batch norm by hand, dropout."""

import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.heads.pool_classifier import (
    add_to_pool,
    classify_pooled,
    init_pool_classifier,
    read_pool,
    running_figures,
    start_pool,
    train_pooled,
)

HIDDEN = np.random.default_rng(0).normal(size=(4, 9, 3)).astype(np.float32)
LENGTHS = np.array([9, 5, 1, 0])


def by_hand(row, length):
    real = row[:length]
    return np.concatenate([real[-1], real.max(axis=0), real.mean(axis=0)]) if length else np.zeros(3 * row.shape[1])


@pytest.mark.parametrize("part", [1, 4, 9])
def test_a_pool_of_parts_is_the_pool_of_the_whole(part):
    pool, add = start_pool(4, 3), jax.jit(add_to_pool)
    for at in range(0, 9, part):
        piece = HIDDEN[:, at : at + part]
        pool = add(pool, piece, np.clip(LENGTHS - at, 0, piece.shape[1]))
    for row, length, pooled in zip(HIDDEN, LENGTHS, np.asarray(jax.jit(read_pool)(pool))):
        np.testing.assert_allclose(pooled, by_hand(row, length), rtol=0, atol=1e-6)


def test_padding_has_no_gradient():
    def value(hidden):
        return read_pool(add_to_pool(start_pool(4, 3), hidden, LENGTHS)).sum()

    gradient = np.asarray(jax.jit(jax.grad(value))(HIDDEN))
    real = np.arange(9) < LENGTHS[:, None]
    assert gradient[real].any(axis=-1).all() and not gradient[~real].any() and np.isfinite(gradient).all()


@functools.cache
def params_with_figures():
    init = jax.jit(init_pool_classifier, static_argnums=(1, 2))
    params, rng = jax.device_get(init(jax.random.key(0), 6, (5, 3))), np.random.default_rng(1)
    for layer in params.values():
        layer["norm"] = {n: rng.uniform(0.5, 2.0, x.shape).astype(np.float32) for n, x in layer["norm"].items()}
    return params


classify = jax.jit(classify_pooled)


@functools.partial(jax.jit, static_argnames="rates")
def train(params, x, key=None, weights=None, rates=(0.0, 0.0)):
    """Return logits and running figures, and the gradient of the first row's logits."""
    compute = lambda params: train_pooled(params, x, key, rates, weights)  # noqa: E731
    return *compute(params), jax.grad(lambda params: compute(params)[0][0].sum())(params)


def layers_by_hand(params, x, figures):
    for n in range(2):
        p = params[f"layer_{n}"]
        mean, variance = figures(p["norm"], x)
        x = (x - mean) / np.sqrt(variance + 1e-5) * np.asarray(p["norm"]["scale"]) + np.asarray(p["norm"]["bias"])
        x = x @ np.asarray(p["kernel"])
        x = np.maximum(x, 0) if n == 0 else x
    return x


def test_logits_by_running_figures():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6))
    expected = layers_by_hand(params, x, lambda norm, x: (np.asarray(norm["mean"]), np.asarray(norm["variance"])))
    np.testing.assert_allclose(classify(params, x.astype(np.float32)), expected, rtol=1e-4, atol=1e-5)


def test_training_uses_the_batch_and_moves_the_running_figures():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    logits, running, gradient = train(params, x, rates=(0.4, 0.1))
    expected = layers_by_hand(params, x, lambda norm, x: (x.mean(axis=0), x.var(axis=0)))
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)
    norm = params["layer_0"]["norm"]
    mean = 0.9 * np.asarray(norm["mean"]) + 0.1 * x.mean(axis=0)
    variance = 0.9 * np.asarray(norm["variance"]) + 0.1 * x.var(axis=0, ddof=1)  # torch keeps the unbiased one
    np.testing.assert_allclose(running["layer_0"]["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(running["layer_0"]["variance"], variance, rtol=1e-5)
    assert not np.asarray(gradient["layer_0"]["norm"]["mean"]).any()


def test_dropout_of_each_layer():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    keys = (None, *jax.random.split(jax.random.key(0)))
    plain, one, other = (np.asarray(train(params, x, key, rates=(0.4, 0.1))[0]) for key in keys)
    assert (plain != one).any() and (one != other).any()
    np.testing.assert_allclose(train(params, x, jax.random.key(1))[0], plain, rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "rates", "message"),
    [(1, (0.1, 0.1), "at least two documents"), (4, (0.1,), "1 dropout rates .* 2 layers")],
)
def test_batches_that_are_refused(rows, rates, message):
    with pytest.raises(ValueError, match=message):
        train_pooled(params_with_figures(), np.ones((rows, 6), np.float32), None, rates)


def test_rows_of_weight_0_change_nothing():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    logits, running, _ = train(params, x[:3])
    weights = np.array([1, 1, 1, 0], np.float32)
    for last in (x[3], 1e6 * x[3], 0 * x[3]):
        padded, same, _ = train(params, np.vstack([x[:3], last[None]]), None, weights)
        np.testing.assert_allclose(np.asarray(padded)[:3], logits, rtol=1e-4, atol=1e-5)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), same, running)


def test_a_single_row_is_normalised_by_the_running_figures():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    logits, running, gradient = train(params, x, None, np.array([1, 0, 0, 0], np.float32))
    np.testing.assert_allclose(np.asarray(logits)[:1], np.asarray(classify(params, x))[:1], rtol=1e-4, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, running, running_figures(params))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
