"""A probe is the minimum of its objective, from any start."""

import numpy as np
import pytest

from bert_elmo_jax.analysis.linear_probe import LinearProbe, Standardised, choose_probe, fit_probe


def data(n=300, d=6, classes=3, seed=0):
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, classes, n)
    centres = draw.normal(size=(classes, d))
    vectors = (centres[numbers] + draw.normal(size=(n, d))) * [1, 10, 100, 1, 0.01, 1] + [0, 5, 0, -300, 0, 0]
    return vectors.astype(np.float32), np.array(["명사", "동사", "형용사", "부사"])[numbers]


def fit(vectors, labels, strength, start=None):
    return fit_probe(Standardised(vectors, labels), strength, start)


def objective(probe: LinearProbe, vectors, labels):
    """Return the loss and its gradient in double precision, from the definition."""
    rows = (vectors.astype(np.float64) - probe.mean) / probe.scale
    logits = rows @ probe.weights + probe.bias
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    right = labels[:, None] == probe.labels[None]
    loss = -np.log(chances[right]).mean() + probe.strength / 2 * np.square(probe.weights).sum()
    slope = rows.T @ (chances - right) / len(rows) + probe.strength * probe.weights
    return loss, slope, (chances - right).mean(axis=0)


@pytest.mark.parametrize("strength", [1.0, 0.01, 1e-4])
def test_the_gradient_is_zero_at_the_end(strength):
    vectors, labels = data()
    probe = fit(vectors, labels, strength=strength)
    _, slope, of_bias = objective(probe, vectors, labels)
    assert probe.converged
    assert np.abs(slope).max() < 2e-4
    assert np.abs(of_bias).max() < 2e-4


def test_the_start_and_the_scale_do_not_matter():
    vectors, labels = data()
    cold, again = (fit(vectors, labels, strength=0.01) for _ in range(2))
    assert np.array_equal(cold.weights, again.weights)
    warm = fit(vectors, labels, strength=0.01, start=fit(vectors, labels, strength=1.0))
    assert abs(objective(cold, vectors, labels)[0] - objective(warm, vectors, labels)[0]) < 1e-6
    assert np.abs(cold.weights - warm.weights).max() < 0.02
    assert (cold.predict(vectors) == warm.predict(vectors)).mean() > 0.99
    wide = fit(vectors * np.float32(1024), labels, strength=0.01)
    assert (wide.predict(vectors * np.float32(1024)) == cold.predict(vectors)).all()


def test_separable_labels_and_constant_columns():
    """The penalty keeps separable labels finite, and constant columns are not divided by zero."""
    vectors = np.zeros((40, 5), np.float32)
    vectors[:20, 1], vectors[:, 3] = 1.0, 7.0
    labels = np.array(["a"] * 20 + ["배"] * 20)
    probe = fit(vectors, labels, strength=1e-5)
    assert probe.converged
    assert np.isfinite(probe.weights).all()
    assert (probe.predict(vectors) == labels).all()
    assert repr(probe) == "LinearProbe(5 dimensions, 2 labels, strength 1e-05)"
    # Vectors that are all the same give the most frequent label.
    labels = np.array(["a"] * 13 + ["배"] * 27)
    probe = fit(np.full((40, 5), 0.1, np.float32), labels, strength=0.01)
    assert probe.predict(np.zeros((2, 5), np.float32)).tolist() == ["배", "배"]


def test_a_single_label_and_one_not_seen_in_training():
    rows = np.eye(3, dtype=np.float32)
    probe, accuracy = choose_probe(rows, np.array(["a"] * 3), rows[:2], np.array(["a", "b"]))
    assert probe.predict(np.ones((1, 3), np.float32)).tolist() == ["a"]
    assert accuracy == 0.5


def test_the_penalty_is_chosen_on_dev():
    """With many columns of noise, the weakest penalty learns them by heart, and the dev score shows it."""
    draw = np.random.default_rng(0)
    numbers = draw.integers(0, 2, 90)
    vectors = draw.normal(size=(90, 60)).astype(np.float32)
    vectors[:, 0] += 3 * numbers
    labels = np.array(["a", "b"])[numbers]
    probe, accuracy = choose_probe(vectors[:45], labels[:45], vectors[45:], labels[45:])
    weakest = fit(vectors[:45], labels[:45], strength=1e-5)
    assert probe.strength > 1e-5
    assert accuracy >= (weakest.predict(vectors[45:]) == labels[45:]).mean()


def test_invalid_data_are_refused():
    rows = np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="2 vectors and 1 labels"):
        fit(rows, np.array(["a"]), strength=0.1)
    with pytest.raises(ValueError, match="strength=0"):
        fit(rows, np.array(["a", "b"]), strength=0.0)
    with pytest.raises(ValueError, match="no labelled vector to choose"):
        choose_probe(rows, np.array(["a", "b"]), rows[:0], np.array([]))
