"""Batches with nearly equal sums of lengths: every example once per epoch, at random."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks.even_batches import plan_even


@given(st.lists(st.integers(2, 60), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 3), st.integers(0, 3))
def test_every_example_occurs_once_per_epoch(lengths, batch_size, seed, epoch):
    batches = plan_even(np.array(lengths), batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert sum(len(batch) < batch_size for batch in batches) <= 1


def draw_lengths(count, seed=0):
    """Lengths of phrases: most are short, a few are long."""
    return np.clip(np.random.default_rng(seed).lognormal(2.4, 0.7, count).astype(np.int64) + 2, 3, 66)


@pytest.mark.parametrize(("batch_size", "deviation"), [(8, 0.06), (32, 0.01)])
def test_sums_are_nearly_equal(batch_size, deviation):
    lengths = draw_lengths(5003)
    batches = plan_even(lengths, batch_size, 0, 0)
    sums = np.array([lengths[batch].sum() for batch in batches if len(batch) == batch_size])
    assert sums.std() < deviation * sums.mean()
    [short] = [batch for batch in batches if len(batch) < batch_size]
    assert abs(lengths[short].mean() - lengths.mean()) < 5


def test_company_changes_with_seed_and_epoch():
    """Even if all lengths differ, an example meets others in the next epoch."""
    lengths = np.arange(3, 83)
    met = [
        {frozenset(pair) for batch in plan_even(lengths, 8, seed, epoch) for pair in pairwise(batch)}
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert all(len(met[0] & other) < 0.35 * len(other) for other in met[1:])
    again = plan_even(lengths, 8, 1, 1)
    assert {frozenset(pair) for batch in again for pair in pairwise(batch)} == met[3]
