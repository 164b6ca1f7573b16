"""Tests of learning-rate schedules against rates computed by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.optim import (
    constant,
    cosine,
    inverse_square_root,
    linear_after_warmup,
    linear_from_start,
    noam,
    phases,
    slanted_triangular,
    warmup_stable_decay,
)  # fmt: skip
from bert_elmo_jax.optim.schedules import after_warmup

STEPS = (0, 1, 9_999, 10_000, 500_000, 1_000_000, 1_000_001)
START = (0, 1e-8, 9.999e-5)  # of all with a linear warm-up
BY_HAND = {
    # BERT's recipe: peak 1e-4, warm-up in 10k of 1M steps, decay in the other 990,000.
    "linear_from_start": (linear_from_start(1e-4, 10_000, 1_000_000), (*START, 0.99e-4, 0.5e-4, 0, 0)),
    "linear_after_warmup": (
        linear_after_warmup(1e-4, 10_000, 1_000_000),
        (*START, 1e-4, 1e-4 * 500_000 / 990_000, 0, 0),
    ),
    # cos(490/990 · π) = 0.0158660
    "cosine": (cosine(1e-4, 10_000, 1_000_000), (*START, 1e-4, 0.5e-4 * 1.0158660, 0, 0)),
    # √(10,000 / 500,000) = 0.1414214, and 0.1 at a million
    "inverse_square_root": (inverse_square_root(1e-4, 10_000), (*START, 1e-4, 1.414214e-5, 1e-5, 1e-5)),
    # The paper's base model with 10,000 steps of warm-up: update n = step + 1, 512^-0.5 = 0.0441942.
    "noam": (
        noam(512, 10_000),
        (
            *(4.41942e-8, 8.83883e-8, 4.41942e-4, 4.41942e-4 * (10_000 / 10_001) ** 0.5),
            *(6.249994e-5, 4.419415e-5, 4.419413e-5),
        ),
    ),
    "constant": (constant(1e-4, 10_000), (*START, 1e-4, 1e-4, 1e-4, 1e-4)),
}


def rates_at(schedule, steps):
    """Return the rates at all steps, in one compiled call."""
    return np.asarray(jax.jit(schedule)(np.array(steps, np.int32)))


@pytest.mark.parametrize("name", BY_HAND)
def test_rates_by_hand(name):
    schedule, rates = BY_HAND[name]
    # For all steps at once, in jit with an optimiser's counter, and without jit.
    np.testing.assert_allclose(rates_at(schedule, STEPS), rates, rtol=1e-6, atol=1e-12)
    compiled = jax.jit(schedule)
    np.testing.assert_allclose([float(compiled(np.int32(step))) for step in STEPS], rates, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(float(schedule(STEPS[4])), rates[4], rtol=1e-6, atol=1e-12)
    if name in ("linear_from_start", "linear_after_warmup", "cosine"):
        steps = np.arange(0, 1_500_000, 999)
        rates = rates_at(schedule, steps)
        assert (rates >= 0).all() and rates.max() <= 1e-4 and np.isfinite(rates).all()
        assert not rates[steps >= 1_000_000].any()


@pytest.mark.parametrize("make", [linear_from_start, linear_after_warmup, cosine])
def test_no_warmup_and_only_warmup(make):
    assert rates_at(make(0.5, 0, 10), [0]) == 0.5
    _, half, at_end, behind = rates_at(make(0.5, 10, 10), [0, 5, 10, 11])
    assert half == 0.25 and at_end in (0, 0.5) and behind == 0
    # Rates rise if the warm-up exceeds the steps.
    np.testing.assert_allclose(rates_at(make(1.0, 100, 10), [0, 5, 9]), [0.0, 0.05, 0.09], atol=1e-6)


def test_other_schedules_by_hand():
    assert float(inverse_square_root(0.5, 0)(0)) == float(constant(0.5)(0)) == 0.5
    assert rates_at(after_warmup(2.0, 4, jnp.ones_like), [0, 2, 4, 5]).tolist() == [0.0, 1.0, 2.0, 2.0]
    # A stable rate that decays at the end.
    steps = np.array([0, 50, 100, 500, 800, 801, 850, 999, 1_000, 1_500])
    expected = 2e-3 * np.minimum(1, steps / 100) * (1 - np.clip((steps - 800) / 200, 0, 1) ** 0.5)
    rates = rates_at(warmup_stable_decay(2e-3, warmup=100, steps=1_000, cooldown=200), steps)
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-12)


def test_two_phases_of_lamb():
    """65,536 sequences at 128 for 7,038 steps, then 32,768 at 512 for 1,563 steps: warm-up 28.43% and 12.8%."""
    first, second = linear_after_warmup(6e-3, 2001, 7038), linear_after_warmup(4e-3, 200, 1563)
    schedule = phases((first, 7038), (second, 1563))
    expected = {0: 0, 1: 6e-3 / 2001, 2001: 6e-3, 7037: 6e-3 / 5037, 7038: 0, 7039: 4e-3 / 200, 7238: 4e-3, 8601: 0}
    np.testing.assert_allclose(rates_at(schedule, [*expected]), [*expected.values()], rtol=1e-5, atol=1e-12)
    three = phases((constant(1.0), 2), (constant(2.0), 3), (constant(3.0), 1))
    assert rates_at(three, range(8)).tolist() == [1, 1, 2, 2, 2, 3, 3, 3]


def test_noam_is_the_formula_of_the_paper():
    n = np.array([1, 7, 4000, 123_456])
    expected = 3 * 256**-0.5 * np.minimum(n**-0.5, n * 4000**-1.5)
    np.testing.assert_allclose(rates_at(noam(256, 4000, factor=3.0), n - 1), expected, rtol=1e-6)


@pytest.mark.parametrize(("steps", "cut"), [(100, 0.1), (1_000, 0.1), (105, 0.1), (64, 0.25)])
def test_slanted_triangle_is_the_formula_of_the_paper(steps, cut):
    up, step = math.floor(steps * cut), np.arange(steps)
    share = np.where(step < up, step / up, 1 - (step - up) / (up * (1 / cut - 1)))
    expected = 0.01 * (1 + np.maximum(0, share) * 31) / 32
    np.testing.assert_allclose(rates_at(slanted_triangular(steps, 0.01, cut), step), expected, rtol=1e-5)


def test_slanted_triangle_of_the_golden_and_of_few_steps(goldens):
    with np.load(goldens / "awd_lstm_tiny" / "golden.npz") as golden:
        expected = golden["slanted_triangle"]
    triangle = rates_at(slanted_triangular(len(expected), expected.max()), np.arange(len(expected)))
    np.testing.assert_allclose(triangle, expected, rtol=1e-5)
    for steps in (1, 2, 5, 9):  # finite and above zero
        rates = rates_at(slanted_triangular(steps, 1.0), np.arange(steps + 3))
        assert (rates >= 1 / 32).all() and (rates <= 1).all() and rates[-1] < 1


INVALID = [  # a call and the message
    (lambda: warmup_stable_decay(1.0, 10, 20, 11), r"a cooldown of 11 steps .* expected 1 to 10"),
    (lambda: warmup_stable_decay(1.0, 10, 20, 0), r"a cooldown of 0 steps"),
    (lambda: slanted_triangular(9, 1.0, 0.0), "cut=0.0"),
    (lambda: slanted_triangular(9, 1.0, 1.0), "cut=1.0"),
    (lambda: noam(8, 0), "needs at least 1"),
]


def test_invalid_schedules_raise():
    for call, message in INVALID:
        with pytest.raises(ValueError, match=message):
            call()
