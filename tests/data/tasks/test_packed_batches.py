"""Packed training batches: one shape for nearly all, little padding, and padded rows where packing does not help."""

import functools
import json
from collections import Counter

import numpy as np
import pytest

from bert_elmo_jax.data.tasks.batches import TaskBatches, collate
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches, Shape, choose_packing, choose_shapes
from bert_elmo_jax.data.tasks.rows import Row

from .test_even_batches import draw_lengths

LIMITS = {"limit": 128, "positions": 512, "pad_id": 0}


def make_rows(lengths):
    return [
        Row(n, (np.ones(length, np.int32),), (np.zeros(length, np.int32),), {"labels": n, "weights": 1.0})
        for n, length in enumerate(lengths)
    ]


def test_one_shape_and_little_padding():
    lengths = draw_lengths(2016)
    rows = make_rows(lengths)
    packed, expected_padding = choose_packing(rows, 32, 1, **LIMITS)
    batches = TaskBatches(rows, 32, 5, packed, even=True)
    all_batches = [next(batches) for _ in range(batches.epoch_size)]
    shapes = Counter(batch["tokens"].shape for batch in all_batches)
    assert len(shapes) <= 2 and shapes.most_common(1)[0][1] >= 0.95 * len(all_batches)
    padding = 1 - lengths.sum() / sum(batch["tokens"].size for batch in all_batches)
    assert padding < 0.05 and abs(padding - expected_padding) < 0.01
    labels = np.concatenate([batch["labels"][batch["weights"] > 0] for batch in all_batches])
    assert sorted(labels.tolist()) == list(range(2016))
    assert {int(batch["weights"].sum()) for batch in all_batches} == {32}
    assert all(shape[1] % 8 == 0 for shape in shapes)


@pytest.mark.parametrize("parts", [2, 8])
def test_devices_and_accumulation_divide_the_rows(parts):
    rows = make_rows(draw_lengths(1000))
    packed, _ = choose_packing(rows, 64, parts, **LIMITS)
    batches = TaskBatches(rows, 64, 0, packed, even=True)
    assert {len(next(batches)["tokens"]) % parts for _ in range(batches.epoch_size)} == {0}


def test_padded_where_packing_does_not_help():
    rows = make_rows(draw_lengths(500))
    for parts, options in ((8, {}), (1, {"packs": False})):  # 8: one example for each device
        packed, padding = choose_packing(rows, 8, parts, **options, **LIMITS)
        assert packed is None and 0.1 < padding < 0.6
    assert choose_packing(make_rows([128] * 50), 8, 1, **LIMITS)[1] == 0


def test_large_batches_and_rare_long_examples_have_other_shapes():
    rows, packed = make_rows([9, 9, 9, 9, 9]), PackedBatches((Shape(1, 16), Shape(2, 16)), 0, parts=2)
    assert [packed(rows[:n], 5)["tokens"].shape for n in (1, 2, 3, 5)] == [(1, 16), (2, 16), (4, 16), (6, 16)]
    assert {batch["tokens"].shape for batch in packed.together([rows[:1], rows[:2]])} == {(2, 16)}
    samples = [np.array([20, 10])] * 30 + [np.array([300, 10])]
    assert [shape.width for shape in choose_shapes(samples, 300, 1, 512)] == [32, 312]
    assert choose_shapes([np.array([700])], 700, 1, 512) == (Shape(1, 704),)  # the choices of one example


def test_resumption_keeps_the_batches_that_were_planned():
    rows = make_rows(draw_lengths(100))
    packed, _ = choose_packing(rows, 8, 1, **LIMITS)
    first = TaskBatches(rows, 8, 0, packed, even=True)
    for _ in range(17):
        next(first)
    state = json.loads(json.dumps(first.state()))
    padded = TaskBatches(rows, 8, 0, functools.partial(collate, limit=128, pad_id=0))  # on other devices
    padded.restore(state)
    again = TaskBatches(rows, 8, 0, packed, even=True)
    again.restore(state)
    for _ in range(12):
        ours, theirs, other = next(first), next(again), next(padded)
        assert all((ours[name] == theirs[name]).all() for name in ours)
        our_labels, other_labels = (sorted(batch["labels"][batch["weights"] > 0].tolist()) for batch in (ours, other))
        assert our_labels == other_labels
    state.pop("even")  # the position of a run of an earlier version
    again.restore(state)
    assert len(next(again)["tokens"]) >= 1 and not again.state()["even"]
