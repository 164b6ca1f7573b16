"""Tests of the loss of answer spans against a loop over all pairs."""

import itertools

import jax
import numpy as np
import pytest

from bert_elmo_jax.losses import answer_loss, cross_entropy

pytestmark = pytest.mark.usefixtures("strict_dtypes")

T = 5
T = 5
LOSS = jax.jit(answer_loss)
ONES = np.ones(3, np.float32)


def drawn(rows, seed=0):
    draw = np.random.default_rng(seed)
    start, end = (draw.normal(0, 2, (rows, T)).astype(np.float32) for _ in range(2))
    return start, end, draw.normal(size=rows).astype(np.float32)


def by_pairs(start, end, none, answers):
    pairs = {(a, b): float(start[a] + end[b]) for a, b in itertools.product(range(T), repeat=2)}
    right = [pairs[tuple(answer)] for answer in answers if answer[0] >= 0] or [none]
    every = [*pairs.values(), *([] if none is None else [none])]
    return np.log(np.exp(every).sum()) - np.log(np.exp(right).sum())


ANSWERS = np.array([[[1, 2], [-1, -1]], [[0, 4], [3, 3]], [[-1, -1], [-1, -1]]], np.int32)


def test_with_no_answer_score():
    start, end, none = drawn(3)
    total, weight = LOSS(start, end, none, ANSWERS, np.array([1.0, 0.5, 2.0], np.float32))
    losses = [by_pairs(start[n], end[n], float(none[n]), ANSWERS[n].tolist()) for n in range(3)]
    assert float(total) == pytest.approx(losses[0] + 0.5 * losses[1] + 2 * losses[2], rel=1e-5)
    assert float(weight) == 3.5


def test_without_no_answer_score_is_two_cross_entropies():
    start, end, _ = drawn(3)
    total, weight = LOSS(start, end, None, ANSWERS[:, :1], ONES)
    has_answer = np.array([1, 1, 0], np.float32)
    apart = [jax.jit(cross_entropy)(side, ANSWERS[:, 0, n], has_answer)[0] for n, side in enumerate((start, end))]
    assert float(total) == pytest.approx(float(apart[0]) + float(apart[1]), rel=1e-5)
    assert float(weight) == 2  # the row without an answer has no weight


def test_gradients_match_finite_differences():
    sides = drawn(3, seed=1)

    def total(start, end, none):
        return LOSS(start, end, none, ANSWERS, ONES)[0]

    gradients = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(*sides)
    for n, (side, gradient) in enumerate(zip(sides, map(np.asarray, gradients))):
        for place in np.ndindex(side.shape):
            two = []
            for step in (0.05, -0.05):
                moved = [np.array(x) for x in sides]
                moved[n][place] += step
                two.append(float(total(*moved)))
            assert float(gradient[place]) == pytest.approx((two[0] - two[1]) / 0.1, abs=2e-3)


def test_rows_of_weight_zero_are_ignored():
    start, end, none = drawn(3)
    bad = [np.array(side) for side in (start, end, none)]
    for side in bad:
        side[1] = np.nan
    answers = np.array(ANSWERS)
    answers[1] = 99
    both = jax.jit(jax.value_and_grad(lambda sides, answers, weights: answer_loss(*sides, answers, weights)[0]))
    weights = np.array([1, 0, 1], np.float32)
    for sides in (tuple(bad), (*bad[:2], None)):
        value, gradients = both(sides, answers, weights)
        fine = LOSS(start, end, none if sides[2] is not None else None, ANSWERS, weights)[0]
        assert float(value) == pytest.approx(float(fine), rel=1e-6)
        for gradient in gradients:
            assert gradient is None or (np.isfinite(gradient).all() and not np.asarray(gradient)[1].any())
        value, gradients = both(sides, answers, 0 * weights)
        assert float(value) == 0
        assert not any(np.asarray(gradient).any() for gradient in gradients if gradient is not None)


def test_masked_scores_are_ignored_and_positions_outside_give_nan():
    """Padding has the reader's scores, −1e9; one row is all padding."""
    start, end, none = drawn(3)
    far = np.array([[0, 0, 1, 1, 1], [1] * 5, [1] * 5], bool)
    start, end = (np.where(far, np.float32(-1e9), side) for side in (start, end))
    answers, weights = np.array([[[1, 1]], [[-1, -1]], [[-1, -1]]], np.int32), np.array([1, 0, 0], np.float32)

    def total(start, end, none):
        return LOSS(start, end, none, answers, weights)[0]

    value, gradients = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))(start, end, none)
    cut = LOSS(start[:1, :2], end[:1, :2], none[:1], answers[:1], weights[:1])[0]
    assert float(value) == pytest.approx(float(cut), rel=1e-6)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert np.isnan(LOSS(*drawn(3), np.full_like(ANSWERS, T), ONES)[0])
