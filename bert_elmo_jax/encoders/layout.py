"""Windows of texts as arrays for a model, and the way back of their vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int32, Int64

from bert_elmo_jax.data.rows.packed_rows import PackedBatch, most_texts
from bert_elmo_jax.data.rows.widths import enumerate_runs
from bert_elmo_jax.encoders.encoded import Encoded
from bert_elmo_jax.encoders.rows import Row


class PieceArrays(NamedTuple):
    """A batch of packed rows; `segments` are 0 for padding and 1, 2, … for the windows of a row."""

    tokens: Int32[np.ndarray, "B T"]
    types: Int32[np.ndarray, "B T"]
    positions: Int32[np.ndarray, "B T"]
    segments: Int32[np.ndarray, "B T"]
    firsts: Int32[np.ndarray, "B S"]  # the first position of each window of a row


class Windows:
    """The windows of texts, numbered from the first window of the first text."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = rows
        counts = np.fromiter((len(row.windows) for row in rows), np.int64, len(rows))
        self.texts, self.numbers = enumerate_runs(counts)
        lengths = (row.length(window) for row in rows for window in range(len(row.windows)))
        self.lengths: Int64[np.ndarray, "N"] = np.fromiter(lengths, np.int64, len(self.texts))
        self._owners = {n: rows[n].owners() for n in np.flatnonzero(counts > 1).tolist()}

    def lay_out(self, batch: PackedBatch, pad_id: int) -> PieceArrays:
        """Return the arrays of a batch."""
        chosen = [(self.rows[n], window) for n, window in self._places(batch)]
        run, place = enumerate_runs(self.lengths[batch.texts])
        at = (batch.rows * batch.width + batch.starts)[run] + place
        shape = (batch.height, batch.width)
        tokens, (types, positions, segments) = np.full(shape, pad_id, np.int32), np.zeros((3, *shape), np.int32)
        tokens.reshape(-1)[at] = np.concatenate([row.take(row.encoding.ids, window) for row, window in chosen])
        types.reshape(-1)[at] = np.concatenate([row.take(row.encoding.types, window) for row, window in chosen])
        positions.reshape(-1)[at] = place
        segments.reshape(-1)[at] = batch.slots[run] + 1
        firsts = np.zeros((batch.height, most_texts(batch.width)), np.int32)
        firsts[batch.rows, batch.slots] = batch.starts
        return PieceArrays(tokens, types, positions, segments, firsts)

    def write(
        self,
        batch: PackedBatch,
        targets: Sequence[Encoded],
        last: Float[np.ndarray, "B T D"],
        layers: Float[np.ndarray, "L B T D"] | None,
        pooled: Float[np.ndarray, "B S D"] | None,
    ) -> None:
        """Write the vectors of a batch into the targets of their texts, each piece from one window."""
        arrays = (batch.rows, batch.slots, batch.starts, self.lengths[batch.texts])
        for (n, window), *place in zip(self._places(batch), *(array.tolist() for array in arrays)):
            row, slot, start, length = place
            target = targets[n]
            into: slice | np.ndarray = slice(0, length)
            source: slice | np.ndarray = slice(start, start + length)
            if n in self._owners:
                columns = self.rows[n].columns(window)
                mine = np.flatnonzero(self._owners[n][columns] == window)
                into, source = columns[mine], start + mine
            target.last[0, into] = last[row, source]
            if target.layers is not None and layers is not None:
                target.layers[:, 0, into] = layers[:, row, source]
            if target.pooled is not None and pooled is not None and window == 0:
                target.pooled[0] = pooled[row, slot]

    def _places(self, batch: PackedBatch) -> list[tuple[int, int]]:
        """Return the texts of a batch and the windows in them."""
        return list(zip(self.texts[batch.texts].tolist(), self.numbers[batch.texts].tolist()))
