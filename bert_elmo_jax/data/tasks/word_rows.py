"""Tagged sentences as rows of words for a task-specific network, and rows as batches of few shapes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.labels import tag_ids
from bert_elmo_jax.text import Lexicon, character_table

Batch = dict[str, np.ndarray]
CHARACTERS = 50  # characters per word, including its two boundary marks
STEP = 8  # batch widths in words are multiples of this
CUTS = (16, 24)  # widths in characters besides CHARACTERS; each one is compiled for every width in words


@dataclass(frozen=True, eq=False)
class WordRow:
    """The input of a sentence: its words, their ids, and its tags if known."""

    example: int
    words: tuple[str, ...]
    ids: Int32[np.ndarray, "T"]
    tags: Int32[np.ndarray, "T"] | None = None

    @property
    def width(self) -> int:
        """The number of words."""
        return len(self.words)

    @property
    def texts(self) -> tuple["WordRow"]:
        """The texts that an encoder reads separately."""
        return (self,)

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        tags = b"" if self.tags is None else self.tags.tobytes()
        return "\0".join(self.words).encode("utf-8", "replace") + b"\0." + self.ids.tobytes() + b"." + tags


# An encoder's outputs for some rows, as entries of their batch [height, …, width, …].
Layers = Callable[[Sequence[WordRow], int, int], Batch]


def make_word_rows(
    sentences: Sequence[TaggedSentence], lexicon: Lexicon, labels: Sequence[str], *, labelled: bool = True
) -> list[WordRow]:
    """Return one row per sentence."""
    return [
        WordRow(n, sentence.words, lexicon.ids(sentence.words), tag_ids(sentence, labels) if labelled else None)
        for n, sentence in enumerate(sentences)
    ]


def collate_words(
    rows: Sequence[WordRow],
    height: int,
    lexicon: Lexicon,
    layers: Layers | None = None,
    *,
    tags: bool = True,
    step: int = STEP,
    cuts: Sequence[int] = CUTS,
) -> Batch:
    """Return rows as arrays, padded to one of a few widths (multiples of `step`) and to `height` with empty rows.

    Words are padded to the first width of `cuts` that fits the longest word, else to CHARACTERS.
    """
    width = word_width(max(row.width for row in rows), step)
    batch: Batch = {"words": np.zeros((height, width), np.int32), "lengths": np.zeros(height, np.int32)}
    for n, row in enumerate(rows):
        batch["words"][n, : row.width] = row.ids
        batch["lengths"][n] = row.width
    if lexicon.unknown == "characters":
        batch["characters"] = characters_of(rows, height, width, cuts)
    if lexicon.brings_vectors:
        batch["brought"] = np.zeros((height, width, lexicon.width), np.float32)
        for n, row in enumerate(rows):
            if (row.ids < 0).any():
                batch["brought"][n, : row.width] = lexicon.vectors(row.words)
    if layers is not None:
        batch |= layers(rows, height, width)
    if tags:
        batch["tags"] = np.zeros((height, width), np.int32)
        for n, row in enumerate(rows):
            batch["tags"][n, : row.width] = row.tags
    return batch


def characters_of(
    rows: Sequence[WordRow], height: int, width: int, cuts: Sequence[int] = CUTS
) -> Int32[np.ndarray, "{height} {width} C"]:
    """Return the characters of every word, padded to the first width of `cuts` that fits; 0 where there is no word."""
    distinct: dict[str, int] = {}
    places = [[distinct.setdefault(word, len(distinct)) for word in row.words] for row in rows]
    longest = max(len(word.encode("utf-8", "replace")) for word in distinct) + 2
    # Two places of padding suffice: a filter of width three then sees the last mark in every position.
    cut = next((cut for cut in cuts if cut >= longest + 2), CHARACTERS)
    table = character_table(list(distinct), cut)
    whole = np.zeros((height, width, table.shape[1]), np.int32)
    for n, row in enumerate(places):
        whole[n, : len(row)] = table[row]
    return whole


def word_width(length: int, step: int = STEP) -> int:
    """Return the padded width of a row in words: a multiple of `step`, with at most four widths per doubling."""
    step = max(step, (1 << (length - 1).bit_length()) // 8)
    return -(-length // step) * step
