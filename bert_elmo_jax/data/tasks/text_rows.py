"""Texts and text pairs as rows of words for a task-specific network, and rows as batches of few shapes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.labels import label_ids
from bert_elmo_jax.data.tasks.word_rows import Batch, Layers, WordRow, collate_words
from bert_elmo_jax.text import Lexicon, split_words
from bert_elmo_jax.text.words import UNK_WORD


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
    """Return the first words of each text; a text without words becomes `<UNK>`."""
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    return [tuple(split_words(text)[:limit]) or (UNK_WORD,) for text in texts]


def count_cut(examples: Sequence[TextExample], limit: int) -> int:
    """Return the number of texts that are truncated to `limit` words."""
    texts = (text for example in examples for text in (example.text, example.pair) if text is not None)
    # A text has at most as many words as characters, so most texts need not be split.
    return sum(len(text) > limit and len(split_words(text)) > limit for text in texts)


def make_text_rows(
    examples: Sequence[TextExample],
    lexicon: Lexicon,
    labels: Sequence[str],
    limit: int,
    *,
    labelled: bool = True,
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
    if targets:
        batch["labels"], batch["weights"] = np.zeros(height, np.int32), np.zeros(height, np.float32)
        batch["labels"][: len(rows)] = [row.label for row in rows]
        batch["weights"][: len(rows)] = 1.0
    return batch
