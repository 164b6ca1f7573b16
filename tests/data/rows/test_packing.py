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
    assert rows[0] == 0 and rows[-1] == len(lengths)
    packed = [lengths[members[first:end]] for first, end in itertools.pairwise(rows.tolist())]
    assert all(1 <= len(row) <= most and row.sum() <= capacity for row in packed)
    assert (members == pack(lengths, capacity, most)[0]).all()
    for one, other in itertools.combinations(packed, 2):
        # Best fit leaves no example alone in a row if it fits into an earlier row.
        if len(other) == 1 and len(one) < most:
            assert one.sum() + other[0] > capacity


def test_rows_are_nearly_full():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(2.6, 0.6, 20000).astype(int), 3, 128)
    _, rows = pack(lengths, 128, 32)
    assert lengths.sum() / (128 * (len(rows) - 1)) > 0.99
    _, rows = pack(lengths, 128, 1)
    assert len(rows) - 1 == len(lengths)
