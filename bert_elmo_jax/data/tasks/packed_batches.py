"""Training batches as packed rows of one shape, and of a larger one for the batches that do not fit it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bert_elmo_jax.data.rows.packing import pack
from bert_elmo_jax.data.rows.widths import round_up, width_for
from bert_elmo_jax.data.tasks.batches import Batch, plan
from bert_elmo_jax.data.tasks.even_batches import plan_even
from bert_elmo_jax.data.tasks.packed_examples import Numbers, Places, Shape, find_places, lay_out, most_choices
from bert_elmo_jax.data.tasks.rows import Row

STEP = 8  # widths are multiples of it
SAMPLE = 32  # batches that are packed to choose a shape
WIDE = 2048  # the width of a row whose attention takes as long as everything else
GAIN = 0.05  # the least share of the time that a second shape saves: it has to be compiled


@dataclass(frozen=True)
class PackedBatches:
    """Make packed batches of examples. `shapes` are tried in order; `parts` divides the rows of all shapes.

    >>> ids = [np.ones(length, np.int32) for length in (9, 5, 3)]
    >>> make = PackedBatches((Shape(1, 16),), pad_id=0)
    >>> make([Row(n, (one,), (one,)) for n, one in enumerate(ids)], 3)["segments"].shape
    (2, 16)
    """

    shapes: tuple[Shape, ...]
    pad_id: int
    parts: int = 1
    choices: int = 1

    def __call__(self, rows: Sequence[Row], height: int) -> Batch:
        """Return the batch of some examples; `height`, their largest number, is not needed."""
        return self.together([rows])[0]

    def together(self, groups: Sequence[Sequence[Row]]) -> list[Batch]:
        """Return the batch of each group of examples, all of one shape."""
        shape, places = self.find_shape([np.array([row.size for row in rows]) for rows in groups])
        return [lay_out(rows, at, shape, self.pad_id, self.choices) for rows, at in zip(groups, places)]

    def find_shape(self, groups: Sequence[Numbers]) -> tuple[Shape, list[Places]]:
        """Return the first shape that fits groups of examples of these lengths, and the places of each group."""
        longest = max(int(lengths.max()) for lengths in groups)
        for shape in self._all_shapes():
            if longest <= shape.width:
                places = [find_places(lengths, shape.width) for lengths in groups]
                if all(group_places.row.max() < shape.rows for group_places in places):
                    return shape, places
        raise AssertionError("there are larger shapes without end")

    def _all_shapes(self) -> Iterator[Shape]:
        """Yield `shapes`, and then larger ones without end; the last of `shapes` has room for the longest example."""
        yield from self.shapes
        rows, width = self.shapes[-1]
        while True:
            rows += round_up(max(1, rows // 8), self.parts)
            yield Shape(rows, width)


def choose_packing(
    rows: Sequence[Row], batch_size: int, parts: int, *, limit: int, positions: int, pad_id: int, packs: bool = True
) -> tuple[PackedBatches | None, float]:
    """Return how to pack the batches of a data set, or None to pad them; and the share of padding.

    They are padded if the model does not pack, or if that takes less time: many devices with one example each need
    padding. The number of packed rows is a multiple of `parts`. Padded rows have at most `limit` positions. Packed rows
    have at most the model's `positions`, unless an example with all its choices has more.

    >>> ids = [np.ones(3 + n % 40, np.int32) for n in range(400)]
    >>> rows = [Row(n, (one,), (one,)) for n, one in enumerate(ids)]
    >>> packing, padding = choose_packing(rows, 16, 1, limit=64, positions=512, pad_id=0)
    >>> packing.shapes, round(padding, 3)
    ((Shape(rows=8, width=48),), 0.062)
    """
    sizes, widths = np.array([row.size for row in rows]), np.array([row.width for row in rows])
    choices = most_choices(rows)
    similar = [widths[chosen] for chosen in plan(widths, batch_size, 0, 0)]
    padded = [Shape(batch_size * choices, width_for(int(lengths.max()), limit)) for lengths in similar]
    if packs:
        even = [sizes[chosen] for chosen in plan_even(sizes, batch_size, 0, 0)]
        even = [lengths for lengths in even if len(lengths) == batch_size] or even
        even = even[:: -(-len(even) // SAMPLE)]
        packing = PackedBatches(choose_shapes(even, int(sizes.max()), parts, positions), pad_id, parts, choices)
        packed = [packing.find_shape([lengths])[0] for lengths in even]
        if np.mean([cost(shape) for shape in packed]) <= np.mean([cost(shape) for shape in padded]):
            return packing, _padding(even, packed)
    return None, _padding([sizes], padded)


def _padding(lengths: Sequence[Numbers], shapes: Sequence[Shape]) -> float:
    return 1 - float(sum(batch_lengths.sum() for batch_lengths in lengths) / sum(shape.positions for shape in shapes))


def choose_shapes(samples: Sequence[Numbers], longest: int, parts: int, positions: int) -> tuple[Shape, ...]:
    """Return the shape that takes the least time for batches of these lengths, and a second one if some do not fit.

    The last shape has room for an example of `longest` pieces.

    >>> choose_shapes([np.array([60, 20, 30, 10]), np.array([60, 40, 10, 10])], 60, parts=2, positions=512)
    (Shape(rows=2, width=64),)
    >>> choose_shapes([np.array([20, 10])] * 30 + [np.array([300, 10])], 300, parts=1, positions=512)
    (Shape(rows=1, width=32), Shape(rows=1, width=312))
    """
    mean = float(np.mean([lengths.sum() for lengths in samples]))
    needed: dict[int, np.ndarray] = {}

    def may_be_better(width: int, best: float) -> bool:
        """Return False if even rows without padding would take too long; otherwise count the rows of each sample."""
        if cost(Shape(round_up(max(1, int(mean / width)), parts), width)) >= best:
            return False
        if width not in needed:
            needed[width] = np.array([_count_rows(lengths, width, parts) for lengths in samples])
        return True

    wide = round_up(longest, STEP)
    widths = range(STEP, max(wide, positions) + 1, STEP)
    best, largest = np.inf, Shape(parts, wide)
    for width in widths[wide // STEP - 1 :]:
        if may_be_better(width, best):
            shape = Shape(int(needed[width].max()), width)
            best, largest = min((best, largest), (cost(shape), shape))
    shapes: tuple[Shape, ...] = (largest,)
    time = best * (1 - GAIN)
    for width in widths:
        if may_be_better(width, time):
            for rows in np.unique(needed[width][np.isfinite(needed[width])]):
                shape, share = Shape(int(rows), width), float((needed[width] <= rows).mean())
                expected = share * cost(shape) + (1 - share) * best
                if expected < time:
                    time, shapes = expected, (shape, largest)
    return shapes


def _count_rows(lengths: Numbers, width: int, parts: int) -> float:
    """Return the number of rows that examples need, a multiple of `parts`; infinity if one of them is too long."""
    if lengths.max() > width:
        return np.inf
    return float(round_up(len(pack(lengths, width, Shape(1, width).examples)[1]) - 1, parts))


def cost(shape: Shape) -> float:
    """Return the time that a batch takes, in positions of narrow rows.

    >>> cost(Shape(2, 128))
    272.0
    """
    return shape.positions * (1 + shape.width / WIDE)
