"""Plan batches of packed rows: little padding, in few shapes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from bert_elmo_jax.data.rows.packing import pack
from bert_elmo_jax.data.rows.widths import WIDTHS, enumerate_runs, height_for, round_up, width_for

# Costs in units of one position without attention. A position attends to its whole row, so it costs 1 + width / 1024 in
# a BERT of base size. A batch costs 32 more, for reading the weights and starting the program. Every shape must be
# compiled, and stays in memory: it costs 64 more, and has to save a 64th of the pieces of a larger plan.
ATTENTION = 1024
CALL = 32
SHAPE = 64

USUAL = 128  # the widest row for short texts
SMALL = 64  # pieces of a request that gets one row, as wide as the next multiple of 8, or of 4 up to half of this
HEIGHTS = (1, 2, 8, 32)  # of batches with fewer rows than the batch size
LONG = 512  # the widest rows of which a full batch is computed
SHORTEST = 3  # pieces of the shortest text: one between two special ones


@dataclass(frozen=True)
class PackedBatch:
    """Texts in rows of one width; the arrays have one entry per text, row after row.

    The last rows of a batch may be empty. `slots` number the texts of each row from 0.

    >>> [batch] = plan_packed(np.array([3, 7, 40, 5, 61]), batch_size=32, limit=512)
    >>> (batch.height, batch.width), batch.texts.tolist(), batch.rows.tolist(), batch.starts.tolist()
    ((2, 64), [4, 0, 2, 1, 3], [0, 0, 1, 1, 1], [0, 61, 0, 40, 47])
    """

    height: int
    width: int
    texts: Int64[np.ndarray, "N"]
    rows: Int64[np.ndarray, "N"]
    slots: Int64[np.ndarray, "N"]
    starts: Int64[np.ndarray, "N"]  # the first position of each text in its row

    @property
    def positions(self) -> int:
        """The number of positions that a model computes for this batch."""
        return self.height * self.width


def most_texts(width: int) -> int:
    """Return the largest number of texts in a row of this width.

    >>> most_texts(128)
    42
    """
    return max(1, width // SHORTEST)


def most_rows(batch_size: int, width: int) -> int:
    """Return how many rows of a width are computed together.

    Attention takes memory with the square of a row's pieces, so 32 rows of 512 pieces take as much as 2 of 2,048.

    >>> most_rows(32, 512), most_rows(32, 1024), most_rows(32, 2048), most_rows(32, 8192)
    (32, 8, 2, 1)
    """
    if width <= LONG:
        return batch_size
    return 1 << (max(1, batch_size * LONG**2 // width**2).bit_length() - 1)


def plan_padded(lengths: Int64[np.ndarray, "N"], batch_size: int, limit: int) -> list[PackedBatch]:
    """Return batches of one text per row, longest first, for models that do not keep packed texts apart.

    >>> [(batch.height, batch.width) for batch in plan_padded(np.array([3, 40, 20, 5]), batch_size=2, limit=512)]
    [(2, 64), (2, 16)]
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    while len(order):
        width = width_for(int(lengths[order[0]]), limit)
        rows = most_rows(batch_size, width)
        texts, order = order[:rows], order[rows:]
        zeros = np.zeros(len(texts), np.int64)
        height = height_for(len(texts), rows)
        batches.append(PackedBatch(height, width, texts, np.arange(len(texts)), zeros, zeros))
    return batches


def plan_packed(lengths: Int64[np.ndarray, "N"], batch_size: int, limit: int) -> list[PackedBatch]:
    """Return batches of rows with several texts each, the longest texts first.

    A text has at most `limit` pieces; rows may be wider. A batch has at most `batch_size` rows, fewer of long ones
    (`most_rows`), and at most as many positions as `batch_size` rows that are just wide enough for the longest text.

    A small request is one row. Otherwise, long texts get rows of a width that just holds them, and shorter texts fill
    the gaps; the rest goes into rows of one width. The cheapest plan wins: it decides which texts count as long, and
    how wide the other rows are.

    >>> lengths = np.array([300, 12, 90] + [25] * 40)
    >>> [(batch.height, batch.width, len(batch.texts)) for batch in plan_packed(lengths, batch_size=32, limit=512)]
    [(1, 384, 4), (1, 96, 1), (8, 128, 38)]
    """
    if not len(lengths):
        return []
    most_positions = batch_size * width_for(int(lengths.max()), limit)
    pieces = int(lengths.sum())
    small = max(8, round_up(pieces, 4 if pieces <= SMALL // 2 else 8))
    if small <= min(SMALL, most_positions):
        members, starts = pack(lengths, small, most_texts(small))
        if len(starts) == 2:
            return _Rows(small, [1], members, starts).to_batches(np.arange(len(lengths)), lengths)
    planner = _Planner(batch_size, limit, most_positions, max(SHAPE, pieces // SHAPE))
    left, batches = np.arange(len(lengths)), []
    while len(left):
        part = planner.choose_rows(lengths[left])
        batches += part.to_batches(left, lengths)
        left = np.delete(left, part.members)
    return batches


@dataclass(frozen=True)
class _Rows:
    """Packed rows of one width, cut into batches of these heights; see `pack` for `members` and `starts`."""

    width: int
    heights: Sequence[int]
    members: Int64[np.ndarray, "N"]
    starts: Int64[np.ndarray, "rows_plus_one"]

    def to_batches(self, texts: Int64[np.ndarray, "M"], lengths: Int64[np.ndarray, "K"]) -> list[PackedBatch]:
        """Return the batches; the members are places in `texts`."""
        batches, row = [], 0
        for height in self.heights:
            starts = self.starts[row : row + height + 1]
            chosen = texts[self.members[starts[0] : starts[-1]]]
            rows, slots = enumerate_runs(np.diff(starts))
            before = np.cumsum(lengths[chosen]) - lengths[chosen]
            first = before - before[starts[:-1] - starts[0]][rows]
            batches.append(PackedBatch(height, self.width, chosen, rows, slots, first))
            row += height
        return batches


class _Planner(NamedTuple):
    """Bounds and costs of a plan."""

    batch_size: int
    limit: int  # pieces of a text
    most_positions: int  # of a batch
    shape: int

    def choose_rows(self, lengths: Int64[np.ndarray, "N"]) -> _Rows:
        """Return rows for all texts, or only for the longest ones if the whole is then estimated to cost less."""
        narrowest = width_for(int(lengths.max()), self.limit)
        plans: list[tuple[float, _Rows]] = []
        widest = min(max(2 * narrowest, USUAL), self.most_positions)
        for width in [narrowest, *(width for width in WIDTHS if narrowest < width <= widest)]:
            members, starts = pack(lengths, width, most_texts(width))
            heights = self.cut(len(starts) - 1, width)[0]
            plans.append((self.cost(width, heights), _Rows(width, heights, members, starts)))
            if len(starts) == 2:
                break  # a wider row would only have more padding
            if width == narrowest:
                plans += self.long_rows(lengths, plans[0][1])
        return min(plans, key=lambda one: one[0])[1]

    def long_rows(self, lengths: Int64[np.ndarray, "N"], every: _Rows) -> list[tuple[float, _Rows]]:
        """Return the first rows, which hold the longest texts, for several meanings of long, and the cost of each plan.

        The cost of the other texts is an estimate: rows without padding, of the width that holds them or the usual one.
        """
        longest = lengths[every.members[every.starts[:-1]]]  # of each row: `pack` opens rows by falling length
        plans = []
        for next_width in (width for width in WIDTHS if width < every.width):
            needed = int((longest > next_width).sum())
            heights = self.cut(needed, every.width)[1]
            rows = sum(heights)  # at least as many as needed: the others hold shorter texts
            if rows < len(longest):
                long_rows = _Rows(every.width, heights, every.members[: every.starts[rows]], every.starts[: rows + 1])
                other_pieces = int(lengths.sum() - lengths[long_rows.members].sum())
                estimate = other_pieces * (1 + max(next_width, USUAL) / ATTENTION) + CALL + self.shape
                plans.append((self.cost(every.width, heights) + estimate, long_rows))
        return plans

    def cut(self, rows: int, width: int) -> tuple[list[int], list[int]]:
        """Return the heights of batches for these rows: the cheapest, and those with the fewest batches."""
        most = most_rows(self.batch_size, width)
        allowed = sorted({*(height for height in HEIGHTS if height < most), most})
        allowed = [height for height in allowed if height == 1 or height * width <= self.most_positions]
        done, remaining = [allowed[-1]] * (rows // allowed[-1]), rows % allowed[-1]
        ways = []
        while remaining:
            ways.append([*done, next(height for height in allowed if height >= remaining)])
            tallest = max(height for height in allowed if height <= remaining)
            done, remaining = [*done, tallest], remaining - tallest
        ways.append(done)
        return min(ways, key=lambda heights: self.cost(width, heights)), ways[0]

    def cost(self, width: int, heights: Sequence[int]) -> float:
        """Return the cost of batches of one width."""
        positions = width * sum(heights)
        return positions * (1 + width / ATTENTION) + CALL * len(heights) + self.shape * len(set(heights))
