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
)

STEPS = (0, 1, 9_999, 10_000, 500_000, 1_000_000, 1_000_001)
BY_HAND = {
    # BERT's recipe: peak 1e-4, warm-up in 10k of 1M steps, decay in the other 990,000.
    "linear_from_start": (linear_from_start(1e-4, 10_000, 1_000_000), (0, 1e-8, 9.999e-5, 0.99e-4, 0.5e-4, 0, 0)),
    "linear_after_warmup": (
        linear_after_warmup(1e-4, 10_000, 1_000_000),
        (0, 1e-8, 9.999e-5, 1e-4, 1e-4 * 500_000 / 990_000, 0, 0),
    ),
    "cosine": (
        cosine(1e-4, 10_000, 1_000_000),
        # cos(490/990 · π) = 0.0158660
        (0, 1e-8, 9.999e-5, 1e-4, 0.5e-4 * 1.0158660, 0, 0),
    ),
    "inverse_square_root": (
        inverse_square_root(1e-4, 10_000),
        # √(10,000 / 500,000) = 0.1414214, and 0.1 at a million
        (0, 1e-8, 9.999e-5, 1e-4, 1.414214e-5, 1e-5, 1e-5),
    ),
    "noam": (
        # The paper's base model with 10,000 steps of warm-up: update n = step + 1, 512^-0.5 = 0.0441942.
        noam(512, 10_000),
        (
            4.41942e-8,
            8.83883e-8,
            4.41942e-4,
            4.41942e-4 * (10_000 / 10_001) ** 0.5,
            6.249994e-5,
            4.419415e-5,
            4.419413e-5,
        ),
    ),
    "constant": (constant(1e-4, 10_000), (0, 1e-8, 9.999e-5, 1e-4, 1e-4, 1e-4, 1e-4)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_rates_by_hand(name):
    schedule, rates = BY_HAND[name]
    of_numbers = [float(schedule(step)) for step in STEPS]
    np.testing.assert_allclose(of_numbers, rates, rtol=1e-6, atol=1e-12)
    # In jit, with an optimiser's counter, and for all steps at once.
    compiled = jax.jit(schedule)
    np.testing.assert_allclose([float(compiled(jnp.int32(step))) for step in STEPS], rates, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(schedule(jnp.array(STEPS)), rates, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["linear_from_start", "linear_after_warmup", "cosine"])
def test_rates_are_never_negative_and_end_at_zero(name):
    rates = np.asarray(BY_HAND[name][0](jnp.arange(0, 1_500_000, 999)))
    assert (rates >= 0).all() and rates.max() <= 1e-4 and np.isfinite(rates).all()
    assert not rates[jnp.arange(0, 1_500_000, 999) >= 1_000_000].any()


@pytest.mark.parametrize("make", [linear_from_start, linear_after_warmup, cosine])
def test_no_warmup_and_only_warmup(make):
    assert float(make(0.5, 0, 10)(0)) == 0.5
    assert float(make(0.5, 10, 10)(5)) == 0.25
    assert float(make(0.5, 10, 10)(10)) in (0, 0.5) and float(make(0.5, 10, 10)(11)) == 0
    assert float(inverse_square_root(0.5, 0)(0)) == float(constant(0.5)(0)) == 0.5


@pytest.mark.parametrize("make", [linear_from_start, linear_after_warmup, cosine])
def test_rates_rise_if_warmup_exceeds_steps(make):
    assert [round(float(make(1.0, 100, 10)(step)), 3) for step in (0, 5, 9)] == [0.0, 0.05, 0.09]


def test_a_stable_rate_that_decays_at_the_end():
    schedule = jax.jit(warmup_stable_decay(2e-3, warmup=100, steps=1_000, cooldown=200))
    for step in (0, 50, 100, 500, 800):
        np.testing.assert_allclose(float(schedule(jnp.int32(step))), 2e-3 * min(1, step / 100), rtol=1e-6)
    for step in (801, 850, 999, 1_000, 1_500):
        expected = 2e-3 * (1 - min(1, (step - 800) / 200) ** 0.5)
        np.testing.assert_allclose(float(schedule(jnp.int32(step))), expected, rtol=1e-5, atol=1e-12)


def test_two_phases_of_lamb():
    """65,536 sequences at 128 for 7,038 steps, then 32,768 at 512 for 1,563 steps: warm-up 28.43% and 12.8%."""
    first, second = linear_after_warmup(6e-3, 2001, 7038), linear_after_warmup(4e-3, 200, 1563)
    schedule = phases((first, 7038), (second, 1563))
    expected = {0: 0, 1: 6e-3 / 2001, 2001: 6e-3, 7037: 6e-3 / 5037, 7038: 0, 7039: 4e-3 / 200, 7238: 4e-3, 8601: 0}
    for step, rate in expected.items():
        np.testing.assert_allclose(float(jax.jit(schedule)(jnp.int32(step))), rate, rtol=1e-5, atol=1e-12)
    three = phases((constant(1.0), 2), (constant(2.0), 3), (constant(3.0), 1))
    assert [float(three(step)) for step in range(8)] == [1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: warmup_stable_decay(1.0, 10, 20, 11), r"a cooldown of 11 steps .* expected 1 to 10"),
        (lambda: warmup_stable_decay(1.0, 10, 20, 0), r"a cooldown of 0 steps"),
    ],
)
def test_invalid_schedules_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_example_of_after_warmup():
    import jax.numpy as jnp

    from bert_elmo_jax.optim.schedules import after_warmup

    schedule = after_warmup(2.0, 4, jnp.ones_like)
    assert [float(schedule(step)) for step in (0, 2, 4, 5)] == [0.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("n", [1, 7, 4000, 123_456])
def test_noam_is_the_formula_of_the_paper(n):
    expected = 3 * 256**-0.5 * min(n**-0.5, n * 4000**-1.5)
    assert float(noam(256, 4000, factor=3.0)(n - 1)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("steps", "cut"), [(100, 0.1), (1_000, 0.1), (105, 0.1), (64, 0.25)])
def test_slanted_triangle_is_the_formula_of_the_paper(steps, cut):
    schedule, up = slanted_triangular(steps, 0.01, cut), math.floor(steps * cut)
    for step in range(steps):
        share = step / up if step < up else 1 - (step - up) / (up * (1 / cut - 1))
        expected = 0.01 * (1 + max(0, share) * 31) / 32
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5)


def test_slanted_triangle_of_the_golden(goldens):
    with np.load(goldens / "awd_lstm_tiny" / "golden.npz") as golden:
        expected = golden["slanted_triangle"]
    schedule = jax.jit(slanted_triangular(len(expected), expected.max()))
    np.testing.assert_allclose([schedule(step) for step in range(len(expected))], expected, rtol=1e-5)


def test_slanted_triangle_of_few_steps_is_finite_and_above_zero():
    for steps in (1, 2, 5, 9):
        rates = [float(slanted_triangular(steps, 1.0)(step)) for step in range(steps + 3)]
        assert all(1 / 32 <= rate <= 1 for rate in rates) and rates[-1] < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((9, 1.0, 0.0), "cut=0.0"), ((9, 1.0, 1.0), "cut=1.0")],
)  # fmt: skip
def test_slanted_triangle_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        slanted_triangular(*arguments)


def test_noam_refuses_to_go_without_a_warmup():
    with pytest.raises(ValueError, match="needs at least 1"):
        noam(8, 0)
