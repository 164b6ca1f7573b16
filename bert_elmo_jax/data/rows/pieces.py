"""Plan the BERT rows of a window of text, and build batches from any of them.

The rows of a window are planned together, from lengths alone. A batch then gathers the tokens of its rows and masks
them with random numbers that depend only on the row.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Int64, Integer

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, MASKS, generator, uniforms
from bert_elmo_jax.data.rows.masking import DRAWS, Masking, Vocabulary, mask_rows
from bert_elmo_jax.data.rows.packing import pack_shuffled
from bert_elmo_jax.data.rows.pairs import SHORTEST, Numbers, Sequences, plain_text, sentence_pairs, with_separators
from bert_elmo_jax.data.rows.widths import Shapes, enumerate_runs
from bert_elmo_jax.did_you_mean import did_you_mean

Tokens = Integer[np.ndarray, "tokens"]
OBJECTIVES = ("nsp", "sop", "sentences", "documents")


@dataclass(frozen=True)
class PieceExamples:
    """Settings of BERT's pretraining examples.

    Args:
        length: positions per row.
        objective: `nsp` (does B follow A, or is it random?), `sop` (are A and B in order?), or no second objective:
            `sentences` fills each row with whole sentences and crosses document boundaries with a [SEP], `documents`
            does not cross them.
        short_share: share of documents (or chunks, see `short_per`) that aim at a random shorter length.
        sequences: maximum number of examples packed into a row.
        copies: 0 makes new examples in every epoch; n repeats the first n epochs, as the original's `dupe_factor`.
    """

    length: int = 128
    objective: Literal["nsp", "sop", "sentences", "documents"] = "nsp"
    short_share: float = 0.1
    short_per: Literal["document", "chunk"] = "document"
    masking: Masking = field(default_factory=Masking)
    sequences: int = 1
    copies: int = 0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            hint = did_you_mean(self.objective, OBJECTIVES)
            raise ValueError(f"objective {self.objective!r} is not known; it is one of {', '.join(OBJECTIVES)}{hint}")
        if self.short_per not in ("document", "chunk"):
            hint = did_you_mean(self.short_per, ("document", "chunk"))
            raise ValueError(f"short_per={self.short_per!r}: expected document or chunk{hint}")
        if self.length < SHORTEST:
            raise ValueError(f"length={self.length} has no room for [CLS] A [SEP] B [SEP]; use {SHORTEST} or more")

    @property
    def places(self) -> int:
        """Return the maximum number of predictions per row (K)."""
        return self.masking.places(self.length)

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return the shape and type of every array in a batch; the number of shards changes nothing."""
        widths = dict.fromkeys(("tokens", "types", "positions", "segments"), self.length)
        widths |= {f"mlm_{name}": self.places for name in ("positions", "targets", "weights")}
        widths |= {f"nsp_{name}": self.sequences for name in ("positions", "targets", "weights")}
        if self.masking.kind == "next":
            widths["causal"] = 1  # its presence says that a piece sees only those before it
        return {name: ((rows, width), np.float32 if "weights" in name else np.int32) for name, width in widths.items()}


@dataclass(frozen=True)
class PieceRows:
    """The rows of a window, in their final order: row r is examples `members[first[r] : first[r + 1]]`."""

    tokens: Tokens  # of the text, then [CLS] and [SEP]
    examples: Sequences
    members: Int64[np.ndarray, "N"]
    first: Int64[np.ndarray, "rows_plus_one"]
    key: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.first) - 1


def plan_rows(text: Text, examples: PieceExamples, vocabulary: Vocabulary, key: tuple[int, ...]) -> PieceRows:
    """Return the rows of a window; `key` identifies the window and its epoch."""
    rng = generator(*key, CONTENT)
    if examples.objective == "nsp" or examples.objective == "sop":
        short: Any = {"short_share": examples.short_share, "short_per": examples.short_per}
        sequences = sentence_pairs(text, examples.length, rng, objective=examples.objective, **short)
    elif examples.objective == "sentences":
        text = with_separators(text, vocabulary.sep)
        sequences = plain_text(text, examples.length, whole_documents=False, closing=1)
    else:
        sequences = plain_text(text, examples.length, whole_documents=True)
    members, first = pack_shuffled(sequences.lengths, examples.length, examples.sequences, rng)
    tokens = np.append(text.tokens, np.array([vocabulary.cls, vocabulary.sep], text.tokens.dtype))
    return PieceRows(tokens, sequences, members, first, (*key, MASKS))


def piece_batch(
    rows: PieceRows, first: int, end: int, examples: PieceExamples, vocabulary: Vocabulary
) -> dict[str, np.ndarray]:
    """Return rows `first` to `end` of a window as a BERT batch."""
    members = rows.members[rows.first[first] : rows.first[end]]
    sequences = Sequences(*(column[members] for column in rows.examples))
    count = np.diff(rows.first[first : end + 1])
    row, slot = enumerate_runs(count)
    begins = np.cumsum(sequences.lengths) - sequences.lengths  # with all examples laid end to end
    offset = begins - np.repeat(begins[slot == 0], count)  # within the row
    batch = _lay_out(rows.tokens, sequences, row, offset, slot, (len(count), examples.length), vocabulary.pad)
    draws = uniforms(rows.key, first, len(count), DRAWS * examples.length).reshape(len(count), DRAWS, examples.length)
    masked = mask_rows(batch["tokens"], batch["segments"], examples.masking, vocabulary, draws)
    batch |= zip(("tokens", "mlm_positions", "mlm_targets", "mlm_weights"), masked)
    for name, values, kind in (
        ("nsp_positions", offset, np.int32),
        ("nsp_targets", sequences.label, np.int32),
        ("nsp_weights", sequences.weight, np.float32),
    ):
        batch[name] = np.zeros((len(count), examples.sequences), kind)
        batch[name][row, slot] = values
    if examples.masking.kind == "next":
        batch["causal"] = np.ones((len(count), 1), np.int32)
    return batch


def _lay_out(
    text: Tokens, examples: Sequences, row: Numbers, offset: Numbers, slot: Numbers, shape: tuple[int, int], pad: int
) -> dict[str, np.ndarray]:
    """Return tokens, types, positions and segments of all rows; the last two tokens of `text` are [CLS] and [SEP]."""
    # Every example has five parts, [CLS] A [SEP] B [SEP]; the last two may be empty.
    one = np.ones_like(examples.a)
    cls, sep = one * (len(text) - 2), one * (len(text) - 1)
    sources = np.stack([cls, examples.a, sep, examples.b, sep], axis=1).ravel()
    second = (examples.b_length > 0).astype(np.int64)
    sizes = np.stack([one, examples.a_length, one, examples.b_length, second], axis=1).ravel()
    lengths = examples.lengths
    counter = np.arange(lengths.sum())
    begins = np.cumsum(lengths) - lengths
    place = np.repeat(row * shape[1] + offset - begins, lengths) + counter
    values = {
        "tokens": text[np.repeat(sources - (np.cumsum(sizes) - sizes), sizes) + counter],
        "types": np.repeat(np.tile([0, 0, 0, 1, 1], len(row)), sizes),
        "positions": counter - np.repeat(begins, lengths),
        "segments": np.repeat(slot + 1, lengths),
    }
    batch = {name: np.full(shape, pad if name == "tokens" else 0, np.int32) for name in values}
    for name, array in values.items():
        batch[name].ravel()[place] = array
    return batch
