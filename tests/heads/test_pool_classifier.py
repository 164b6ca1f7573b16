"""The pooling classifier: pools part by part, batch norm by hand, dropout."""

import jax
import jax.numpy as jnp
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


@pytest.mark.parametrize("part", [1, 2, 4, 9])
def test_a_pool_of_parts_is_the_pool_of_the_whole(part):
    pool = start_pool(4, 3)
    for at in range(0, 9, part):
        piece = HIDDEN[:, at : at + part]
        pool = add_to_pool(pool, piece, np.clip(LENGTHS - at, 0, piece.shape[1]))
    for row, length, found in zip(HIDDEN, LENGTHS, np.asarray(read_pool(pool))):
        np.testing.assert_allclose(found, by_hand(row, length), rtol=0, atol=1e-6)


def test_padding_has_no_gradient():
    def value(hidden):
        return read_pool(add_to_pool(start_pool(4, 3), hidden, LENGTHS)).sum()

    gradient = np.asarray(jax.grad(value)(HIDDEN))
    real = np.arange(9) < LENGTHS[:, None]
    assert gradient[real].any(axis=-1).all() and not gradient[~real].any() and np.isfinite(gradient).all()


def params_with_figures():
    params = init_pool_classifier(jax.random.key(0), 2, (5, 3))
    rng = np.random.default_rng(1)
    for layer in params.values():
        layer["norm"] = {
            name: jnp.asarray(rng.uniform(0.5, 2.0, value.shape), jnp.float32) for name, value in layer["norm"].items()
        }
    return params


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
    np.testing.assert_allclose(classify_pooled(params, x.astype(np.float32)), expected, rtol=1e-4, atol=1e-5)


def test_training_uses_the_batch_and_moves_the_running_figures():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    logits, running = train_pooled(params, x, None, (0.4, 0.1))
    expected = layers_by_hand(params, x, lambda norm, x: (x.mean(axis=0), x.var(axis=0)))
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)
    norm = params["layer_0"]["norm"]
    mean = 0.9 * np.asarray(norm["mean"]) + 0.1 * x.mean(axis=0)
    variance = 0.9 * np.asarray(norm["variance"]) + 0.1 * x.var(axis=0, ddof=1)  # torch keeps the unbiased one
    np.testing.assert_allclose(running["layer_0"]["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(running["layer_0"]["variance"], variance, rtol=1e-5)
    gradient = jax.grad(lambda params: train_pooled(params, x, None, (0.0, 0.0))[0].sum())(params)
    assert not np.asarray(gradient["layer_0"]["norm"]["mean"]).any()


def test_dropout_of_each_layer():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    plain, one, other = (
        train_pooled(params, x, key, (0.4, 0.1))[0] for key in (None, *jax.random.split(jax.random.key(0)))
    )
    assert (plain != one).any() and (one != other).any()
    same = train_pooled(params, x, jax.random.key(1), (0.0, 0.0))[0]
    np.testing.assert_allclose(same, plain, rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "rates", "message"),
    [(1, (0.1, 0.1), "at least two documents"), (4, (0.1,), "1 dropout rates .* 2 layers")],
)
def test_batches_that_are_refused(rows, rates, message):
    with pytest.raises(ValueError, match=message):
        train_pooled(params_with_figures(), np.ones((rows, 6), np.float32), None, rates)


def test_rows_of_weight_0_change_nothing():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    logits, running = train_pooled(params, x[:3], None, (0.0, 0.0))
    weights = np.array([1, 1, 1, 0], np.float32)
    for last in (x[3], 1e6 * x[3], 0 * x[3]):
        padded, same = train_pooled(params, np.vstack([x[:3], last[None]]), None, (0.0, 0.0), weights)
        np.testing.assert_allclose(padded[:3], logits, rtol=1e-4, atol=1e-5)
        for ours, theirs in zip(jax.tree.leaves(same), jax.tree.leaves(running), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_single_row_is_normalised_by_the_running_figures():
    params, x = params_with_figures(), np.random.default_rng(2).normal(size=(3, 6)).astype(np.float32)
    weights = np.array([1, 0, 0], np.float32)
    logits, running = train_pooled(params, x, None, (0.0, 0.0), weights)
    np.testing.assert_allclose(logits[:1], classify_pooled(params, x[:1]), rtol=1e-4, atol=1e-5)
    assert jax.tree.map(np.array_equal, running, running_figures(params)) == {
        f"layer_{n}": {"mean": True, "variance": True} for n in range(2)
    }
    gradient = jax.grad(lambda params: train_pooled(params, x, None, (0.0, 0.0), weights)[0][0].sum())(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
