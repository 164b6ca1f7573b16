"""The loss of a classifier of documents, and running figures that no optimizer changes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import optim, train
from bert_elmo_jax.heads.document_head import document_loss, keep_figures
from bert_elmo_jax.heads.pool_classifier import (
    classify_pooled,
    init_pool_classifier,
    running_figures,
    train_pooled,
    with_figures,
)

BATCH = {
    "words": np.arange(24, dtype=np.int32).reshape(4, 2, 3), "lengths": np.array([6, 2, 5, 0], np.int32),
    "labels": np.array([0, 2, 1, 0], np.int32), "weights": np.array([1, 1, 1, 0], np.float32),
}  # fmt: skip


def pool(encoder, words, lengths, key):
    """Return some function of the words in place of an encoder's output."""
    real = jnp.arange(6)[None] < lengths[:, None]
    return jnp.where(real, jnp.sin(encoder["scale"] * words.reshape(4, 6)), 0.0)


@pytest.fixture
def params():
    init = jax.jit(init_pool_classifier, static_argnums=(1, 2))
    return {"encoder": {"scale": jnp.float32(0.7)}, "classifier": init(jax.random.key(0), 6, (5, 3))}


@functools.partial(jax.jit, static_argnums=(0, 1))
def compute(rates, class_weights, params, key, carry):
    return document_loss(pool, rates, class_weights and list(class_weights))(params, BATCH, key, carry)


def pooled(params):
    words, lengths = (jnp.asarray(BATCH[name]) for name in ("words", "lengths"))
    return np.asarray(jax.jit(pool)(params["encoder"], words, lengths, None))


def cross_entropy(logits, labels):
    logits = np.asarray(logits, np.float64)
    return -(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))[np.arange(len(labels)), labels]


def test_loss_by_hand(params):
    figures = running_figures(params["classifier"])
    terms, metrics, carry = compute((0.0, 0.0), (1.0, 2.0, 0.5), params, jax.random.key(1), figures)
    train = jax.jit(lambda head, x: train_pooled(head, x, None, (0.0, 0.0)))
    logits, running = train(params["classifier"], pooled(params)[:3])
    total, weight = terms["cross_entropy"]
    expected = cross_entropy(logits, BATCH["labels"][:3]) * np.array([1.0, 0.5, 2.0])
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-3)
    assert float(weight) == 3.5 and float(metrics["accuracy"][1]) == 3
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), carry, running)


def test_held_out_it_uses_the_figures_of_the_parameters(params):
    terms, _, carry = compute((0.4, 0.1), None, params, None, np.float32(7))
    logits = jax.jit(classify_pooled)(params["classifier"], pooled(params)[:3])
    expected = cross_entropy(logits, BATCH["labels"][:3]).sum()
    np.testing.assert_allclose(terms["cross_entropy"][0], expected, rtol=1e-4)
    assert carry == 7


@pytest.mark.parametrize("method", [optax.adamw(0.1, weight_decay=0.5), optim.freeze(optax.sgd(0.1), ["encoder/.*"])])
def test_figures_go_from_the_batch_into_the_parameters(params, method):
    step = jax.jit(keep_figures(train.make_step(document_loss(pool, (0.0, 0.0)), method, {"cross_entropy": 1.0})))
    figures = running_figures(params["classifier"])
    state = train.new_state(params, method, jax.random.key(0), figures)
    for _ in range(2):
        _, _, expected = compute((0.0, 0.0), None, state.params, jax.random.key(5), figures)
        state, _ = step(state, BATCH)
        new_figures = running_figures(state.params["classifier"])
        assert jax.tree.map(np.shape, new_figures) == jax.tree.map(np.shape, figures)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), new_figures, expected)


def test_a_step_without_a_finite_loss_keeps_the_figures(params):
    method = optax.sgd(0.1)
    step = jax.jit(keep_figures(train.make_step(document_loss(pool, (0.0, 0.0)), method, {"cross_entropy": 1.0})))
    state = train.new_state(params, method, jax.random.key(0), running_figures(params["classifier"]))
    state, _ = step(state, BATCH)
    broken = {**state.params, "encoder": {"scale": jnp.float32(np.nan)}}
    after, metrics = step(state.replace(params=broken), BATCH)
    assert int(metrics["failed"]) == 1
    same = jax.tree.map(np.array_equal, after.params["classifier"], state.params["classifier"])
    assert all(jax.tree.leaves(same))


def test_other_figures(params):
    head = params["classifier"]
    other = jax.tree.map(lambda x: np.asarray(x) + 1, running_figures(head))
    assert float(with_figures(head, other)["layer_1"]["norm"]["mean"][0]) == 1
    assert float(head["layer_1"]["norm"]["mean"][0]) == 0
