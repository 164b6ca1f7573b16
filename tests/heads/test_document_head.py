"""The loss of a classifier of documents, and running figures that no optimizer changes."""

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
    head = init_pool_classifier(jax.random.key(0), 2, (5, 3))
    return {"encoder": {"scale": jnp.float32(0.7)}, "classifier": head}


def cross_entropy(logits, labels):
    logits = np.asarray(logits, np.float64)
    return -(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))[np.arange(len(labels)), labels]


def test_loss_by_hand(params):
    pooled = pool(params["encoder"], *(jnp.asarray(BATCH[name]) for name in ("words", "lengths")), None)
    loss = document_loss(pool, (0.0, 0.0), [1.0, 2.0, 0.5])
    (terms, metrics, carry) = loss(params, BATCH, jax.random.key(1), running_figures(params["classifier"]))
    logits, running = train_pooled(params["classifier"], pooled[:3], None, (0.0, 0.0))
    total, weight = terms["cross_entropy"]
    labels = BATCH["labels"][:3]
    expected = cross_entropy(logits, labels) * np.array([1.0, 0.5, 2.0])
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-3)
    assert float(weight) == 3.5 and float(metrics["accuracy"][1]) == 3
    for ours, theirs in zip(jax.tree.leaves(carry), jax.tree.leaves(running), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_held_out_it_uses_the_figures_of_the_parameters(params):
    loss = document_loss(pool, (0.4, 0.1))
    (total, _), _, carry = (lambda found: (found[0]["cross_entropy"], found[1], found[2]))(
        loss(params, BATCH, None, "carried")
    )
    pooled = pool(params["encoder"], *(jnp.asarray(BATCH[name]) for name in ("words", "lengths")), None)
    expected = cross_entropy(classify_pooled(params["classifier"], pooled)[:3], BATCH["labels"][:3]).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-4)
    assert carry == "carried"


@pytest.mark.parametrize("method", [optax.adamw(0.1, weight_decay=0.5), optim.freeze(optax.sgd(0.1), ["encoder/.*"])])
def test_figures_go_from_the_batch_into_the_parameters(params, method):
    loss = document_loss(pool, (0.0, 0.0))
    step = keep_figures(train.make_step(loss, method, {"cross_entropy": 1.0}))
    figures = running_figures(params["classifier"])
    state = train.new_state(params, method, jax.random.key(0), figures)
    for _ in range(2):
        _, _, expected = loss(state.params, BATCH, jax.random.key(5), None)
        state, _ = step(state, BATCH)
        found = running_figures(state.params["classifier"])
        assert jax.tree.map(np.shape, found) == jax.tree.map(np.shape, figures)
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_step_without_a_finite_loss_keeps_the_figures(params):
    method = optax.sgd(0.1)
    step = keep_figures(train.make_step(document_loss(pool, (0.0, 0.0)), method, {"cross_entropy": 1.0}))
    state = train.new_state(params, method, jax.random.key(0), running_figures(params["classifier"]))
    state, _ = step(state, BATCH)
    broken = {**state.params, "encoder": {"scale": jnp.float32(np.nan)}}
    after, metrics = step(state.replace(params=broken), BATCH)
    assert int(metrics["failed"]) == 1
    same = jax.tree.map(np.array_equal, after.params["classifier"], state.params["classifier"])
    assert all(jax.tree.leaves(same))


def test_other_figures():
    head = init_pool_classifier(jax.random.key(0), 2, (5, 3))
    other = jax.tree.map(lambda x: x + 1, running_figures(head))
    assert float(with_figures(head, other)["layer_1"]["norm"]["mean"][0]) == 1
    assert float(head["layer_1"]["norm"]["mean"][0]) == 0
