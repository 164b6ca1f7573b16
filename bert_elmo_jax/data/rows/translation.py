"""Rows of texts with their translations, for models with an encoder and a decoder.

A pair is a document of two sentences: the source and the target. Several pairs may share a row; attention then stays
within a pair, because both sides number their pairs alike.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64, Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, generator
from bert_elmo_jax.data.rows.packing import pack
from bert_elmo_jax.data.rows.widths import Shapes, enumerate_runs

Numbers = Int64[np.ndarray, "N"]
SOURCE = ("source_tokens", "source_positions", "source_segments")
TARGET = ("target_in", "target_out", "target_positions", "target_segments")


@dataclass(frozen=True)
class PairExamples:
    """Settings of examples with a source and a target.

    Args:
        source_length: positions of a row's sources; every source ends with the piece `end`.
        target_length: positions of a row's targets. The decoder reads `start` and the target, and predicts the target
            and `end`.
        start: the piece before the first one of a target.
        end: the piece after the last one.
        pad: the piece in empty positions.
        sequences: maximum number of pairs packed into a row.
        reverse: translate from the second side to the first.
    """

    source_length: int
    target_length: int
    start: int
    end: int
    pad: int
    sequences: int = 1
    reverse: bool = False

    def __post_init__(self) -> None:
        for name, length in (("source_length", self.source_length), ("target_length", self.target_length)):
            if length < 2:
                raise ValueError(f"{name}={length} has no room for a piece and the end of the text; use 2 or more")
        if self.sequences < 1:
            raise ValueError(f"sequences={self.sequences} per row: expected 1 (no packing) or more")

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return the shape and type of every array in a batch; the number of shards changes nothing."""
        widths = dict.fromkeys(SOURCE, self.source_length) | dict.fromkeys(TARGET, self.target_length)
        return {name: ((rows, width), np.int32) for name, width in widths.items()}


@dataclass(frozen=True)
class PairRows:
    """The rows of a window, in their final order: row r is pairs `members[first[r] : first[r + 1]]`.

    `begins` and `lengths` are those of each pair's source and target in `tokens`; lengths count the mark, too.
    """

    tokens: Integer[np.ndarray, "tokens"]
    begins: Int64[np.ndarray, "N 2"]
    lengths: Int64[np.ndarray, "N 2"]
    members: Numbers
    first: Int64[np.ndarray, "rows_plus_one"]

    def __len__(self) -> int:
        return len(self.first) - 1


def plan_pair_rows(text: Text, asked: PairExamples, key: tuple[int, ...]) -> PairRows:
    """Return the rows of a window; `key` identifies the window and its epoch.

    Pairs that are longer than a row on either side are left out, and so are texts of which one side has no piece.
    """
    count = np.diff(text.documents)
    if (count > 2).any():
        raise ValueError(
            f"a document of this corpus has {count.max()} sentences, but a pair has two, source and target: prepare "
            "pairs with prepare_data --source=… --target=…"
        )
    first = text.documents[:-1][count == 2]
    cuts = text.sentences[first[:, None] + np.arange(3)]
    begins, lengths = cuts[:, :2], np.diff(cuts, axis=1) + 1
    if asked.reverse:
        begins, lengths = begins[:, ::-1], lengths[:, ::-1]
    capacity = np.array([asked.source_length, asked.target_length])
    fits = (lengths <= capacity).all(axis=1)
    begins, lengths = begins[fits], lengths[fits]

    rng = generator(*key, CONTENT)
    order = rng.permutation(len(begins))
    if asked.sequences == 1:
        return PairRows(text.tokens, begins, lengths, order, np.arange(len(order) + 1))
    # Positions of the source, or the same share of the target's row if that is more: rows then hold both sides.
    sizes = np.maximum(lengths[:, 0], -(-lengths[:, 1] * capacity[0] // capacity[1]))
    packed, starts = pack(sizes[order], asked.source_length, asked.sequences)
    row_order = rng.permutation(len(starts) - 1)
    held = np.diff(starts)[row_order]
    new = np.concatenate([[0], np.cumsum(held)])
    members = order[packed][np.repeat(starts[row_order] - new[:-1], held) + np.arange(len(packed))]
    return PairRows(text.tokens, begins, lengths, members, new)


def pair_batch(rows: PairRows, first: int, end: int, asked: PairExamples) -> dict[str, Int32[np.ndarray, "B T"]]:
    """Return rows `first` to `end` of a window as a batch."""
    members = rows.members[rows.first[first] : rows.first[end]]
    row, slot = enumerate_runs(np.diff(rows.first[first : end + 1]))
    count = end - first
    batch = {name: np.zeros(*shape) for name, shape in asked.shapes(count).items()}
    for side, name, width in ((0, "source", asked.source_length), (1, "target", asked.target_length)):
        lengths = rows.lengths[members, side]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        before = np.cumsum(lengths) - lengths  # with all pairs laid end to end
        offset = before - before[slot == 0][row]
        place = np.repeat(row * width + offset, lengths) + within
        source = np.repeat(rows.begins[members, side], lengths) + within
        last = within == np.repeat(lengths - 1, lengths)
        closed = np.where(last, asked.end, rows.tokens[np.where(last, 0, source)])
        values = {f"{name}_positions": within, f"{name}_segments": np.repeat(slot + 1, lengths)}
        if name == "source":
            values["source_tokens"] = closed
        else:
            opened = np.where(within == 0, asked.start, rows.tokens[np.where(within == 0, 0, source - 1)])
            values |= {"target_in": opened, "target_out": closed}
        for field, array in values.items():
            if field in ("source_tokens", "target_in", "target_out"):
                batch[field][:] = asked.pad
            batch[field].ravel()[place] = array
    return batch
