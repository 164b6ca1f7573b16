"""Drifts and gradient norms of a model with known numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import optim, train
from bert_elmo_jax.report.show import show
from experiments.studies.transfer.drift import (
    Trace,
    build_step,
    compare_ways,
    first_gradients,
    follow,
    layer_norms,
    mean_trace,
    name_layers,
    own_drifts,
)

PARAMS = {
    "encoder": {"embeddings": {"word": jnp.array([3.0, 4.0])}, "layer_0": {"bias": jnp.array([2.0])}},
    "head": jnp.array([1.0]),
}
DEPTHS = {"embeddings/word": 0, "layer_0/bias": 1}


def loss(params, batch, key, carry):
    """The gradients are 1 and 2 for the embeddings, and the batch for the layer and the head."""
    word, bias = params["encoder"]["embeddings"]["word"], params["encoder"]["layer_0"]["bias"]
    total = (word * jnp.array([1.0, 2.0])).sum() + ((bias + params["head"]) * batch["x"]).sum()
    return {"sum": (total, jnp.ones(()))}, {}, carry


def trace(method, steps=4):
    layers = name_layers(PARAMS, DEPTHS.get)
    step, optimizer = build_step(loss, method, {"sum": 1.0}, layers)
    state = train.new_state(PARAMS, optimizer, jax.random.key(0))
    return follow(step, state, [{"x": jnp.full(1, -float(n + 1))} for n in range(steps)], layers)


def test_drift_and_gradients_of_each_step():
    history, state = trace(optax.sgd(0.1))
    assert history.layers == ("embeddings", "layer 1")
    np.testing.assert_allclose(history.drift[:, 0], [n * 0.1 * 5**0.5 / 5 for n in (1, 2, 3, 4)], rtol=1e-6)
    np.testing.assert_allclose(history.drift[:, 1], [0.1 * n / 2 for n in (1, 3, 6, 10)], rtol=1e-6)
    moved = np.hypot(0.1 * np.array([1, 2, 3, 4]) * 5**0.5, 0.1 * np.array([1, 3, 6, 10]))
    np.testing.assert_allclose(history.whole, moved / 29**0.5, rtol=1e-6)
    np.testing.assert_allclose(history.gradients, [[5**0.5, n] for n in (1, 2, 3, 4)], rtol=1e-6)
    assert float(state.params["head"][0]) == pytest.approx(2.0)


def test_a_layer_that_is_trained_later():
    spans = {
        "encoder": {"embeddings": {"word": optim.Spans(())}, "layer_0": {"bias": optim.Spans(((2, None),))}},
        "head": optim.Spans(),
    }
    history, _ = trace(optim.train_during(spans, lambda step: 0.1, optax.sgd, clip=1e9))
    assert history.begins() == [None, 2]
    assert history.drift[:, 0].tolist() == [0] * 4 and history.drift[1, 1] == 0
    assert history.gradients[:, 1].tolist() == [1, 2, 3, 4]  # they are there before they are used
    assert first_gradients(history) == ["–", "3.5"]
    assert own_drifts(history) == ["–", "–"]  # fewer steps than are compared


def test_own_steps_are_counted_from_the_first_one():
    drift = np.stack([np.arange(12.0), np.maximum(0.0, np.arange(12.0) - 1)], axis=1)
    history = Trace(("embeddings", "layer 1"), drift, drift.mean(1), drift)
    assert history.begins() == [1, 2]
    assert own_drifts(history) == ["10.0000", "10.0000"]


def test_means_over_seeds():
    one, other = (Trace(("a",), np.full((2, 1), x), np.full(2, x), np.full((2, 1), x), (x,)) for x in (1.0, 3.0))
    mean = mean_trace([one, other])
    assert mean.drift.tolist() == [[2.0], [2.0]] and mean.whole.tolist() == [2.0, 2.0]
    assert mean.scores == (1.0, 3.0)


def test_layers_that_are_not_encoded():
    params = {"encoder": {"layer_0": {"a": 1, "b": 1}, "pooler": {"c": 1}}, "x": 1}
    layers = name_layers(params, {"layer_0/a": 1, "layer_0/b": 1}.get)
    assert layers == {"layer 1": [0, 1], "above": [2]}
    encoder = {"layer_0": {"a": jnp.ones(3), "b": jnp.ones(1)}, "pooler": {"c": jnp.zeros(1)}}
    assert layer_norms(encoder, layers).tolist() == [2, 0]


def test_a_line_of_figures_for_each_model():
    history, _ = trace(optax.sgd(0.1))
    findings = compare_ways({"bert": {"all": history, "frozen": history._replace(drift=0 * history.drift)}}, "F1")
    assert len(findings.tables) == 3 and len(findings.figures) == 2
    end, own_steps, gradients = findings.tables.values()
    assert end[0] == ["way", "F1", "encoder", "embeddings", "layer 1"] and [row[0] for row in own_steps] == [
        "way", "all", "frozen",
    ]  # fmt: skip
    assert gradients[2] == ["frozen", "–", "–"]
    drawn = show(*findings.figures.values()).document
    assert "all, layer 1" in drawn and "gradient norm of each layer" in drawn
