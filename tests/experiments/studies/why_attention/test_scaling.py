"""Scores are divided by √d: variances, saturated softmaxes, and a layer that learns only with the division."""

import numpy as np
import pytest

from experiments.studies.why_attention import scaling
from experiments.studies.why_attention.scaling import saturate, softmax, softmax_gradient, train_recall


@pytest.fixture(scope="module")
def saturations():
    return {(s.width, s.scaled): s for s in saturate((4, 64, 512), samples=800)}


def test_the_variance_of_a_dot_product_is_its_width(saturations):
    for (width, scaled), s in saturations.items():
        expected = 1 if scaled else width
        # 12,800 scores, some with the same query, so their variance is less certain than for independent scores.
        assert s.variance == pytest.approx(expected, rel=4 * np.sqrt((2 + 2 * 16 / width) / 12_800))


def test_an_unscaled_softmax_saturates_and_a_scaled_one_does_not(saturations):
    unscaled, scaled = ([saturations[width, kind] for width in (4, 64, 512)] for kind in (False, True))
    for name, falls in (("entropy", True), ("gradient", True), ("largest", False)):
        values = [getattr(s, name) for s in unscaled]
        assert values == sorted(values, reverse=falls)
        same = [getattr(s, name) for s in scaled]
        assert max(same) < 1.1 * min(same)
    assert unscaled[-1].gradient < scaled[-1].gradient / 5
    assert unscaled[-1].largest > 0.9 > 0.4 > scaled[-1].largest


def test_the_gradient_of_a_softmax_is_that_of_differences():
    scores, step = np.random.default_rng(0).normal(size=(1, 5)), 1e-6
    for j, moved in enumerate(np.eye(5)[:, None]):
        slope = (softmax(scores + step * moved) - softmax(scores - step * moved)) / (2 * step)
        np.testing.assert_allclose(softmax_gradient(softmax(scores))[0, :, j], slope[0], atol=1e-8)


@pytest.mark.long
def test_only_scaled_scores_learn(monkeypatch):
    monkeypatch.setattr(scaling, "WORDS", 24)
    unscaled, scaled = (train_recall(128, kind, steps=120, rate=0.02) for kind in (False, True))
    assert scaled.learned is not None and scaled.final > 0.95
    assert unscaled.learned is None and unscaled.final < scaled.final - 0.1
    assert scaled.stuck == 0 < unscaled.stuck
