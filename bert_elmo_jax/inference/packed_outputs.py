"""The scores of examples in packed rows, in batches of few shapes."""

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Int64

from bert_elmo_jax.data.rows.packed_rows import most_rows
from bert_elmo_jax.data.rows.widths import WIDTHS, height_for, round_up, width_for
from bert_elmo_jax.data.tasks.batches import Batch
from bert_elmo_jax.data.tasks.packed_batches import cost
from bert_elmo_jax.data.tasks.packed_examples import Places, Shape, find_places, lay_out, most_choices
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.inference.row_outputs import two_at_a_time
from bert_elmo_jax.progress_bars import BarPart, count_rows

INPUTS = ("tokens", "types", "positions", "segments", "nsp_positions")
USUAL = 128  # the width of the rows of many examples, unless one is longer
LITTLE = 0.05  # a share of padding that wider rows need not reduce


@dataclass(frozen=True)
class PackedInputs:
    """The batches of some examples: `shape` without the last one, the indices of the examples, and their places."""

    shape: Shape
    chosen: tuple[Int64[np.ndarray, "_"], ...]
    places: tuple[Places, ...]

    @property
    def shapes(self) -> list[Shape]:
        """The shape of each batch: the last may have fewer rows."""
        rows = [int(places.row.max()) + 1 for places in self.places]
        return [Shape(height_for(count, self.shape.rows), self.shape.width) for count in rows]


def plan_inputs(lengths: Int64[np.ndarray, "N"], batch_size: int, positions: int, parts: int = 1) -> PackedInputs:
    """Pack examples into rows, and rows into batches of about `batch_size` examples.

    Rows have at most the model's `positions` unless an example with its choices has more. The number of rows in a batch
    is a multiple of `parts`, except in the last one.

    >>> plan_inputs(np.array([12]), 32, 512).shapes
    [Shape(rows=1, width=16)]
    >>> plan_inputs(3 + np.arange(1000) % 20, 32, 512).shapes[:2]
    [Shape(rows=4, width=128), Shape(rows=4, width=128)]
    """
    total, longest = int(lengths.sum()), int(lengths.max())
    top = max(positions, round_up(longest, 64)) if longest > positions else positions
    usual = min(USUAL, top)
    if total <= usual:
        widths = [width_for(total, top)]
    else:
        widths = [width for width in WIDTHS if max(longest, usual) <= width <= top] or [top]
    best = None
    for width in widths:
        places = find_places(lengths, width)
        shape = Shape(int(places.row.max()) + 1, width)
        if best is None or cost(shape) < cost(best[0]):
            best = shape, places
        if total >= (1 - LITTLE) * shape.positions:
            break
    assert best is not None
    (rows, width), places = best
    share = max(1, round(batch_size * total / len(lengths) / width))
    height = round_up(min(height_for(share, batch_size), most_rows(batch_size, width)), parts)
    order = np.argsort(places.row, kind="stable")
    cuts = np.searchsorted(places.row[order], range(height, rows, height))
    chosen = tuple(np.split(order, cuts))
    of_batch = (Places(places.row[c] - n * height, places.slot[c], places.begin[c]) for n, c in enumerate(chosen))
    return PackedInputs(Shape(height, width), chosen, tuple(of_batch))


def make_inputs(rows: Sequence[Row], planned: PackedInputs, pad_id: int) -> Iterator[Batch]:
    """Yield the batches of examples without their targets."""
    choices = most_choices(rows)
    for shape, chosen, places in zip(planned.shapes, planned.chosen, planned.places, strict=True):
        batch = lay_out([rows[n] for n in chosen], places, shape, pad_id, choices)
        yield {name: batch[name] for name in INPUTS}


def compute_packed(
    run: Callable[[Mapping[str, np.ndarray]], Any],
    rows: Sequence[Row],
    batch_size: int,
    *,
    positions: int,
    pad_id: int,
    of_pieces: bool,
    parts: int = 1,
    progress: bool | BarPart = False,
) -> list[Any]:
    """Return the outputs of `run` for each example: one per piece (`of_pieces`), or one per example."""
    if not rows:
        return []
    planned = plan_inputs(np.array([row.size for row in rows]), batch_size, positions, parts)
    scores: list[Any] = [None] * len(rows)
    batches = make_inputs(rows, planned, pad_id)
    with count_rows(progress, len(rows)) as bar, contextlib.closing(two_at_a_time(run, batches)) as computed:
        for chosen, places, shape in zip(planned.chosen, planned.places, planned.shapes, strict=True):
            with bar.computing(shape):
                arrays = next(computed)
            for n, row, slot, begin in zip(chosen.tolist(), *(column.tolist() for column in places)):
                columns = slice(begin, begin + rows[n].size) if of_pieces else slot
                scores[n] = jax.tree.map(operator.itemgetter((row, columns)), arrays)
            bar.update(len(chosen))
    return scores
