"""Lay several examples of a task into each row: segments keep them apart, and positions restart with each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from bert_elmo_jax.data.rows.packing import pack
from bert_elmo_jax.data.rows.widths import enumerate_runs
from bert_elmo_jax.data.tasks.batches import Batch
from bert_elmo_jax.data.tasks.rows import Row

Numbers = Int64[np.ndarray, "_"]
SHORTEST = 4  # pieces per example, if a row has as many examples as it may: [CLS] a few pieces [SEP]


class Shape(NamedTuple):
    """The number of packed rows of a batch, and their width.

    >>> Shape(4, 128).positions, Shape(4, 128).examples
    (512, 32)
    """

    rows: int
    width: int

    @property
    def positions(self) -> int:
        """The number of positions of a batch."""
        return self.rows * self.width

    @property
    def examples(self) -> int:
        """The largest number of examples in a row."""
        return max(1, self.width // SHORTEST)


class Places(NamedTuple):
    """The row of each example, its number in the row, and its first position there."""

    row: Numbers
    slot: Numbers
    begin: Numbers


def find_places(lengths: Numbers, width: int) -> Places:
    """Return the places of examples of these lengths in rows of `width` positions, as few rows as packing finds.

    >>> find_places(np.array([3, 7, 2]), 10)
    Places(row=array([0, 0, 1]), slot=array([1, 0, 0]), begin=array([7, 0, 0]))
    """
    members, first = pack(lengths, width, Shape(1, width).examples)
    row, slot = enumerate_runs(np.diff(first))
    ends = np.cumsum(lengths[members])
    begin = ends - lengths[members]
    begin -= np.repeat(begin[slot == 0], np.diff(first))
    order = np.argsort(members)
    return Places(row[order], slot[order], begin[order])


def lay_out(rows: Sequence[Row], places: Places, shape: Shape, pad_id: int, choices: int = 1) -> Batch:
    """Return examples as a batch of packed rows; the choices of an example follow each other in one row.

    `nsp_positions` [rows, examples] are the first positions of the examples, or [rows, examples, choices] of their
    choices. Segment n + 1 begins at the n-th of them. Numbers as targets have the shape [rows, examples], and targets
    of pieces lie at the positions of the pieces. Examples and choices that are absent have no segment and weight 0.

    >>> ids = [np.array([2, 7, 3], np.int32), np.array([2, 3], np.int32)]
    >>> rows = [Row(n, (one,), (one * 0,), {"labels": n, "weights": 1.0}) for n, one in enumerate(ids)]
    >>> batch = lay_out(rows, find_places(np.array([3, 2]), 8), Shape(1, 8), pad_id=0)
    >>> batch["segments"].tolist(), batch["positions"].tolist(), batch["nsp_positions"].tolist()
    ([[1, 1, 1, 2, 2, 0, 0, 0]], [[0, 1, 2, 0, 1, 0, 0, 0]], [[0, 3]])
    """
    counts = np.array([len(row.ids) for row in rows])
    owner, choice = enumerate_runs(counts)
    lengths = np.array([len(ids) for row in rows for ids in row.ids])
    first = np.cumsum(lengths) - lengths  # with all sequences laid end to end
    begin = places.begin[owner] + first - np.repeat(first[choice == 0], counts)
    number = places.slot[owner] * choices + choice
    sequence, position = enumerate_runs(lengths)
    at = places.row[owner][sequence], begin[sequence] + position
    batch: Batch = {name: np.zeros((shape.rows, shape.width), np.int32) for name in ("types", "positions", "segments")}
    batch["tokens"] = np.full((shape.rows, shape.width), pad_id, np.int32)
    batch["tokens"][at] = np.concatenate([ids for row in rows for ids in row.ids])
    batch["types"][at] = np.concatenate([types for row in rows for types in row.types])
    batch["positions"][at] = position
    batch["segments"][at] = number[sequence] + 1
    starts = np.zeros((shape.rows, shape.examples * choices), np.int32)
    starts[places.row[owner], number] = begin
    batch["nsp_positions"] = starts if choices == 1 else starts.reshape(shape.rows, shape.examples, choices)
    for name, value in rows[0].targets.items():
        of_pieces = isinstance(value, np.ndarray)
        targets = [row.targets[name] for row in rows]
        kind = np.int32 if np.asarray(value).dtype.kind in "iu" else np.float32
        batch[name] = np.zeros((shape.rows, shape.width if of_pieces else shape.examples), kind)
        batch[name][at if of_pieces else places[:2]] = np.concatenate(targets) if of_pieces else targets
    return batch


def most_choices(rows: Sequence[Row]) -> int:
    """Return the largest number of choices of an example; 1 for tasks without choices.

    >>> ids = np.array([2, 3], np.int32)
    >>> most_choices([Row(0, (ids, ids), (ids, ids)), Row(1, (ids,), (ids,))])
    2
    """
    return max(len(row.ids) for row in rows)
