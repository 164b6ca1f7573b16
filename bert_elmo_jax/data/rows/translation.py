"""Rows of texts with their translations, for models with an encoder and a decoder.

A pair is a document of two sentences: the source and the target. Several pairs may share a row; attention then stays
within a pair, because both sides number their pairs alike.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64, Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, generator
from bert_elmo_jax.data.rows.packing import pack_shuffled
from bert_elmo_jax.data.rows.widths import Shapes, enumerate_runs

Numbers = Int64[np.ndarray, "N"]
SOURCE = ("source_tokens", "source_positions", "source_segments")
TARGET = ("target_in", "target_out", "target_positions", "target_segments")


@dataclass(frozen=True)
class PairExamples:
    """Settings of examples with a source and a target.

    Args:
        source_length: positions of a row's sources, which have the special pieces of the tokenizer around them.
        target_length: positions of a row's targets. The decoder reads `start` and the target, and predicts the target
            and `end`.
        start: the piece before the first one of a target.
        end: the piece after the last one of a target.
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

    @property
    def length(self) -> int:
        """The positions of a row's sources."""
        return self.source_length

    @property
    def tokens(self) -> int:
        """The positions of a row's sources and targets."""
        return self.source_length + self.target_length

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return the shape and type of every array in a batch; the number of shards changes nothing."""
        widths = dict.fromkeys(SOURCE, self.source_length) | dict.fromkeys(TARGET, self.target_length)
        return {name: ((rows, width), np.int32) for name, width in widths.items()}


@dataclass(frozen=True)
class PairRows:
    """The rows of a window, in their final order: row r is pairs `members[first[r] : first[r + 1]]`.

    `begins` has the places in `tokens` where each pair's source and target begin; `lengths` count the special pieces,
    too. `frame` has the pieces around a source.
    """

    tokens: Integer[np.ndarray, "tokens"]
    frame: tuple[tuple[int, ...], tuple[int, ...]]
    begins: Int64[np.ndarray, "N 2"]
    lengths: Int64[np.ndarray, "N 2"]
    members: Numbers
    first: Int64[np.ndarray, "rows_plus_one"]

    def __len__(self) -> int:
        return len(self.first) - 1


def plan_pair_rows(
    text: Text,
    examples: PairExamples,
    key: tuple[int, ...],
    frame: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    unknown: tuple[int, int] | None = None,
) -> PairRows:
    """Return the rows of a window; `key` identifies the window and its epoch.

    `frame` are the pieces before and after every source. In a corpus of words, ids from `unknown[0]` on are words
    outside the vocabulary, and become `unknown[1]`. Pairs that are longer than a row on either side are left out, and
    so are pairs with an empty side.
    """
    count = np.diff(text.documents)
    if (count > 2).any():
        raise ValueError(
            f"a document of this corpus has {count.max()} sentences, but a pair has two, source and target: prepare "
            "pairs with prepare_data --source=… --target=…"
        )
    first = text.documents[:-1][count == 2]
    cuts = text.sentences[first[:, None] + np.arange(3)]
    begins, lengths = cuts[:, :2], np.diff(cuts, axis=1)
    if examples.reverse:
        begins, lengths = begins[:, ::-1], lengths[:, ::-1]
    lengths = lengths + np.array([len(frame[0]) + len(frame[1]), 1])
    capacity = np.array([examples.source_length, examples.target_length])
    short_enough = (lengths <= capacity).all(axis=1)
    begins, lengths = begins[short_enough], lengths[short_enough]

    tokens = text.tokens if unknown is None else np.where(text.tokens < unknown[0], text.tokens, unknown[1])
    return pack_pairs(tokens, frame, begins, lengths, examples, key)


def pack_pairs(
    tokens: Integer[np.ndarray, "tokens"],
    frame: tuple[tuple[int, ...], tuple[int, ...]],
    begins: Int64[np.ndarray, "N 2"],
    lengths: Int64[np.ndarray, "N 2"],
    examples: PairExamples,
    key: tuple[int, ...],
) -> PairRows:
    """Return rows of pairs; see `PairRows` and `plan_pair_rows`."""
    # Positions of the source, or the same share of the target's row if that is more: rows then hold both sides.
    sizes = np.maximum(lengths[:, 0], -(-lengths[:, 1] * examples.source_length // examples.target_length))
    packed = pack_shuffled(sizes, examples.source_length, examples.sequences, generator(*key, CONTENT))
    return PairRows(tokens, frame, begins, lengths, *packed)


def pair_batch(rows: PairRows, first: int, end: int, examples: PairExamples) -> dict[str, Int32[np.ndarray, "B T"]]:
    """Return rows `first` to `end` of a window as a batch."""
    members = rows.members[rows.first[first] : rows.first[end]]
    row, slot = enumerate_runs(np.diff(rows.first[first : end + 1]))
    batch = empty_pair_batch(end - first, examples)
    for side, name, width in ((0, "source", examples.source_length), (1, "target", examples.target_length)):
        lengths, begins = rows.lengths[members, side], rows.begins[members, side]
        before = np.cumsum(lengths) - lengths  # with all pairs laid end to end
        within = np.arange(lengths.sum()) - np.repeat(before, lengths)
        offset = before - before[slot == 0][row]  # within the row
        place = np.repeat(row * width + offset, lengths) + within
        values = {f"{name}_positions": within, f"{name}_segments": np.repeat(slot + 1, lengths)}
        if name == "source":
            values["source_tokens"] = _framed(rows.tokens, begins, lengths, within, *rows.frame)
        else:
            values["target_in"] = _framed(rows.tokens, begins, lengths, within, (examples.start,), ())
            values["target_out"] = _framed(rows.tokens, begins, lengths, within, (), (examples.end,))
        for field, array in values.items():
            batch[field].ravel()[place] = array
    return batch


def empty_pair_batch(rows: int, examples: PairExamples) -> dict[str, Int32[np.ndarray, "B T"]]:
    """Return a batch of empty rows."""
    batch = {name: np.zeros(*shape) for name, shape in examples.shapes(rows).items()}
    for name in ("source_tokens", "target_in", "target_out"):
        batch[name][:] = examples.pad
    return batch


def _framed(
    tokens: Integer[np.ndarray, "tokens"],
    begins: Numbers,
    lengths: Numbers,
    within: Int64[np.ndarray, "M"],
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> Int64[np.ndarray, "M"]:
    """Return the pieces of texts laid end to end, each with the pieces before and after it."""
    behind = within - np.repeat(lengths - len(after), lengths)  # from 0 on: the place in `after`
    inside = (within >= len(before)) & (behind < 0)
    source = np.repeat(begins - len(before), lengths) + within
    pieces = np.zeros(len(within), np.int64)
    pieces[inside] = tokens[source[inside]]
    for n, piece in enumerate(before):
        pieces[within == n] = piece
    for n, piece in enumerate(after):
        pieces[behind == n] = piece
    return pieces
