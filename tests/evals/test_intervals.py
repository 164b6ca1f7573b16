"""Intervals against values computed by hand."""

import math

import numpy as np
import pytest

from bert_elmo_jax.evals.intervals import bootstrap_interval, correlation_interval, share_interval


def test_wilson():
    # 8 of 10: p = 0.8, z² / n = 0.38415; middle (0.8 + 0.19207) / 1.38415, reach 1.96 √(0.016 + 0.0096) / 1.38415.
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    low, high = share_interval(0, 10)
    assert low == 0 and high == pytest.approx(0.38415 / 1.38415, abs=1e-4)
    assert share_interval(10, 10) == pytest.approx((1 - high, 1.0))


def test_correlations():
    middle, reach = 0.5 * math.log(3), 1.959964 / 5  # r = 0.5 of 28 rows
    assert correlation_interval(0.5, 28) == pytest.approx((math.tanh(middle - reach), math.tanh(middle + reach)))
    low, high = correlation_interval(0.5, 28, ranks=True)
    assert low < math.tanh(middle - reach) < math.tanh(middle + reach) < high
    assert correlation_interval(1.0, 9) == (1.0, 1.0)
    assert correlation_interval(0.5, 3) is correlation_interval(math.nan, 9) is None


def test_samples_of_rows():
    right = np.repeat([1.0, 0.0], [80, 20])
    low, high = bootstrap_interval(100, lambda rows: right[rows].mean())
    wilson = share_interval(80, 100)
    assert (low, high) == pytest.approx(wilson, abs=0.02)
    assert (low, high) == bootstrap_interval(100, lambda rows: right[rows].mean())  # the same samples each time
    assert bootstrap_interval(5, lambda rows: 1.0) == (1.0, 1.0)
