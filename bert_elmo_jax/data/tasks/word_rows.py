"""Tagged sentences, texts and text pairs as rows of words for a task network, and rows as batches of few shapes."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import ParsedSentence, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.labels import label_ids, tag_ids
from bert_elmo_jax.text import Lexicon, character_table
from bert_elmo_jax.text.words import UNK_WORD, split_line

Batch = dict[str, np.ndarray]
CHARACTERS = 50  # characters per word, including its two boundary marks
STEP = 8  # batch widths in words are multiples of this
CUTS = (16, 24)  # widths in characters besides CHARACTERS; each one is compiled for every width in words


@dataclass(frozen=True, eq=False)
class WordRow:
    """The input of a sentence: its words, their ids, and if there are any, its tags and hand-made features."""

    example: int
    words: tuple[str, ...]
    ids: Int32[np.ndarray, "T"]
    tags: Int32[np.ndarray, "T"] | None = None
    features: Int32[np.ndarray, "T F"] | None = None

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


def words_of_sentences(sentences: Sequence[TaggedSentence] | Sequence[ParsedSentence]) -> Iterator[tuple[str, ...]]:
    """Yield the words of each sentence, composed (NFC), as vocabularies have them."""
    for sentence in sentences:
        yield tuple(unicodedata.normalize("NFC", word) for word in sentence.words)


def make_word_rows(
    sentences: Sequence[TaggedSentence], lexicon: Lexicon, labels: Sequence[str], *, labelled: bool = True
) -> list[WordRow]:
    """Return one row per sentence; rows with labels are for training."""
    rows = []
    for n, (sentence, words) in enumerate(zip(sentences, words_of_sentences(sentences))):
        tags = tag_ids(sentence, labels) if labelled else None
        features = None if lexicon.features is None else lexicon.features.ids(words, training=labelled)
        rows.append(WordRow(n, words, lexicon.ids(words), tags, features))
    return rows


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
    if lexicon.characters:
        batch["characters"] = characters_of(rows, height, width, cuts)
    if lexicon.brings_vectors:
        batch["brought"] = np.zeros((height, width, lexicon.width), np.float32)
        for n, row in enumerate(rows):
            if (row.ids < 0).any():
                batch["brought"][n, : row.width] = lexicon.vectors(row.words)
    if lexicon.features is not None:
        batch["features"] = np.zeros((height, width, lexicon.features.columns), np.int32)
        for n, row in enumerate(rows):
            batch["features"][n, : row.width] = row.features
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
    layers_array = np.zeros((height, width, table.shape[1]), np.int32)
    for n, row in enumerate(places):
        layers_array[n, : len(row)] = table[row]
    return layers_array


def word_width(length: int, step: int = STEP) -> int:
    """Return the padded width of a row in words: a multiple of `step`, with at most four widths per doubling."""
    step = max(step, (1 << (length - 1).bit_length()) // 8)
    return -(-length // step) * step


@dataclass(frozen=True, eq=False)
class TextRow:
    """The input of an example: its text, or both texts of a pair, and the id of its label if known."""

    example: int
    texts: tuple[WordRow, ...]
    label: int | None = None

    @property
    def width(self) -> int:
        """The number of words of the longest text."""
        return max(text.width for text in self.texts)

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        label = -1 if self.label is None else self.label
        return b"\0?".join(text.content() for text in self.texts) + b"\0=%d" % label


def words_of_texts(example: TextExample, limit: int) -> list[tuple[str, ...]]:
    """Return the first words of each text, composed (NFC); a text without words becomes `<UNK>`."""
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    return [tuple(split_line(text, "punctuation")[:limit]) or (UNK_WORD,) for text in texts]


def count_cut(examples: Sequence[TextExample], limit: int) -> int:
    """Return the number of texts that are truncated to `limit` words."""
    texts = (text for example in examples for text in (example.text, example.pair) if text is not None)
    # A text has at most as many words as characters, so most texts need not be split.
    return sum(len(text) > limit and len(split_line(text, "punctuation")) > limit for text in texts)


def make_text_rows(
    examples: Sequence[TextExample], lexicon: Lexicon, labels: Sequence[str], limit: int, *, labelled: bool = True
) -> list[TextRow]:
    """Return one row per example, with texts truncated to `limit` words each."""
    numbers = label_ids(examples, labels).tolist() if labelled else [None] * len(examples)
    return [
        TextRow(n, tuple(WordRow(n, words, lexicon.ids(words)) for words in words_of_texts(example, limit)), number)
        for n, (example, number) in enumerate(zip(examples, numbers))
    ]


def collate_texts(
    rows: Sequence[TextRow], height: int, lexicon: Lexicon, layers: Layers | None = None, *, targets: bool = True
) -> Batch:
    """Return rows as arrays, padded to one of a few widths and to `height` with empty rows of weight 0.

    Single texts have the entries of `collate_words`; for pairs the shapes are [height, 2, …], with one common width.
    """
    many = len(rows[0].texts)
    batch = collate_words([text for row in rows for text in row.texts], many * height, lexicon, layers, tags=False)
    if many > 1:
        batch = {name: array.reshape(height, many, *array.shape[1:]) for name, array in batch.items()}
    return batch | (label_arrays(rows, height) if targets else {})


def label_arrays(rows: Sequence[Any], height: int) -> Batch:
    """Return the labels of rows and their weights, 0 for the rows that fill a batch."""
    labels, weights = np.zeros(height, np.int32), np.zeros(height, np.float32)
    labels[: len(rows)] = [row.label for row in rows]
    weights[: len(rows)] = 1.0
    return {"labels": labels, "weights": weights}
