"""Rows packed with examples: each piece, target and position at its place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks.packed_examples import Shape, find_places, lay_out, most_choices
from bert_elmo_jax.data.tasks.rows import Row


def make_row(number, lengths, **targets):
    ids = tuple(np.arange(length, dtype=np.int32) + 10 * number + 5 for length in lengths)
    return Row(number, ids, tuple((one % 2).astype(np.int32) for one in ids), targets)


@given(st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=3), min_size=1, max_size=12))
def test_every_sequence_is_in_its_segment(lengths):
    rows = [make_row(n, choice_lengths, labels=n, weights=1.0) for n, choice_lengths in enumerate(lengths)]
    places = find_places(np.array([row.size for row in rows]), 30)
    shape, choices = Shape(int(places.row.max()) + 2, 30), most_choices(rows)
    batch = lay_out(rows, places, shape, 999, choices)
    assert (batch["tokens"] != 999).sum() == (batch["segments"] > 0).sum() == sum(row.size for row in rows)
    starts = batch["nsp_positions"].reshape(shape.rows, shape.examples, choices)
    for n, (row, slot) in enumerate(zip(places.row, places.slot)):
        assert batch["labels"][row, slot] == n and batch["weights"][row, slot] == 1.0
        for choice, (ids, types) in enumerate(zip(rows[n].ids, rows[n].types)):
            [at] = np.flatnonzero(batch["segments"][row] == slot * choices + choice + 1)[:1]
            span = slice(at, at + len(ids))
            assert starts[row, slot, choice] == at
            np.testing.assert_array_equal(batch["tokens"][row, span], ids)
            np.testing.assert_array_equal(batch["types"][row, span], types)
            np.testing.assert_array_equal(batch["positions"][row, span], np.arange(len(ids)))
    assert batch["weights"].sum() == len(rows)


def test_whole_batch_of_choices_by_hand():
    rows = [make_row(0, (2, 3), labels=1, weights=1.0), make_row(1, (2,), labels=0, weights=1.0)]
    batch = lay_out(rows, find_places(np.array([5, 2]), 8), Shape(1, 8), 0, choices=2)
    assert batch["segments"].tolist() == [[1, 1, 2, 2, 2, 3, 3, 0]]
    assert batch["positions"].tolist() == [[0, 1, 0, 1, 2, 0, 1, 0]]
    assert batch["nsp_positions"].tolist() == [[[0, 2], [5, 0]]]
    assert batch["labels"].tolist() == [[1, 0]] and batch["weights"].tolist() == [[1.0, 1.0]]


def test_targets_of_pieces_lie_at_the_pieces():
    labels, weights = np.array([7, 8, 9], np.int32), np.array([0, 1, 1], np.float32)
    rows = [make_row(n, (k,), labels=labels[:k], weights=weights[:k]) for n, k in enumerate((3, 2))]
    batch = lay_out(rows, find_places(np.array([3, 2]), 8), Shape(2, 8), 0)
    assert batch["labels"].tolist() == [[7, 8, 9, 7, 8, 0, 0, 0], [0] * 8]
    assert batch["weights"].tolist() == [[0, 1, 1, 0, 1, 0, 0, 0], [0] * 8]
    assert (batch["labels"].dtype, batch["weights"].dtype) == (np.int32, np.float32)
