import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.rows.packing import pack


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(30, 64), st.integers(1, 6))
def test_every_example_is_packed_once_and_fits(lengths, capacity, most):
    lengths = np.array(lengths, np.int64)
    members, rows = pack(lengths, capacity, most)
    assert sorted(members.tolist()) == list(range(len(lengths)))
    assert rows[0] == 0
    assert rows[-1] == len(lengths)
    for first, end in itertools.pairwise(rows.tolist()):
        assert 1 <= end - first <= most
        assert lengths[members[first:end]].sum() <= capacity
    again, _ = pack(lengths, capacity, most)
    assert (members == again).all()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 64), st.integers(1, 6))
def test_no_single_example_fits_into_an_earlier_row(lengths, capacity, most):
    lengths = np.array(lengths, np.int64)
    members, rows = pack(lengths, capacity, most)
    sums = np.add.reduceat(lengths[members], rows[:-1])
    counts = np.diff(rows)
    smallest = np.minimum.reduceat(lengths[members], rows[:-1])
    for one, other in itertools.permutations(range(len(sums)), 2):
        # Best fit leaves no example alone in a row if it fits into an earlier row.
        if counts[other] == 1 and counts[one] < most and other > one:
            assert sums[one] + smallest[other] > capacity


def test_rows_are_nearly_full():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(2.6, 0.6, 20000).astype(int), 3, 128)
    _, rows = pack(lengths, 128, 32)
    assert lengths.sum() / (128 * (len(rows) - 1)) > 0.99
    _, rows = pack(lengths, 128, 1)
    assert len(rows) - 1 == len(lengths)
