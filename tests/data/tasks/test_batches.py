"""Batches of a task: every row once per epoch, one order per seed and epoch, exact resumption."""

import functools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.tasks.batches import TaskBatches, collate, plan
from bert_elmo_jax.data.tasks.rows import Row


def rows_of(lengths):
    return [
        Row(n, (np.full(k, n + 10, np.int32),), (np.zeros(k, np.int32),), {"labels": n, "weights": 1.0})
        for n, k in enumerate(lengths)
    ]


def batches_of(lengths, batch_size=4, seed=0):
    return TaskBatches(rows_of(lengths), batch_size, seed, functools.partial(collate, limit=64, pad_id=0))


@given(st.lists(st.integers(2, 60), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 3), st.integers(0, 3))
def test_every_row_occurs_once_per_epoch(lengths, batch_size, seed, epoch):
    batches = plan(np.array(lengths), batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert sum(len(batch) < batch_size for batch in batches) <= 1


def test_orders_differ_and_rows_of_similar_length_share_batches():
    lengths = np.full(64, 5)
    orders = {tuple(np.concatenate(plan(lengths, 4, seed, epoch)).tolist()) for seed in (0, 1) for epoch in (0, 1)}
    assert len(orders) == 4
    lengths = np.random.default_rng(0).integers(3, 60, 2000)
    assert sum(lengths[batch].max() * len(batch) for batch in plan(lengths, 16, 0, 0)) < 1.1 * lengths.sum()


@given(st.integers(0, 30))
def test_resumption_is_exact(done):
    lengths = list(range(3, 25))
    first = batches_of(lengths)
    for _ in range(done):
        next(first)
    second = batches_of(lengths)
    second.restore(json.loads(json.dumps(first.state())))
    for _ in range(8):
        ours, theirs = next(first), next(second)
        assert all((ours[name] == theirs[name]).all() for name in ours)


def test_other_data_is_refused():
    for lengths, size, state, message in (
        ([3, 4, 6], 4, batches_of([3, 4, 5]).state(), "the training examples have changed since this run started"),
        ([3, 4, 5], 2, batches_of([3, 4, 5]).state(), "batch_size has changed since this run started"),
        ([3], 4, {}, "not the state of a task's batches"),
        ([], 4, {}, "no rows to train on"),
    ):
        with pytest.raises(ValueError, match=message):
            batches_of(lengths, size).restore(state)


def test_padding_has_no_weight():
    batch = collate(rows_of([3, 20]), height=4, limit=24, pad_id=7)
    assert batch["tokens"].shape == (4, 24) and (batch["tokens"][2] == 7).all()
    assert batch["weights"].tolist() == [1, 1, 0, 0]
    assert batch["segments"].sum(axis=1).tolist() == [3, 20, 0, 0]
    assert (batch["labels"].dtype, batch["weights"].dtype) == (np.int32, np.float32)
    ids = np.array([2, 5, 3], np.int32)  # rows with different numbers of choices
    rows = [Row(n, (ids,) * k, (ids * 0,) * k, {"labels": 0, "weights": 1.0}) for n, k in enumerate((4, 2))]
    batch = collate(rows, height=2, limit=64, pad_id=0)
    assert batch["segments"].any(axis=2).tolist() == [[True] * 4, [True, True, False, False]]
