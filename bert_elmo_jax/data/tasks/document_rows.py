"""Texts of any length as rows of ids in parts, and rows as batches of few shapes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.labels import label_ids
from bert_elmo_jax.data.tasks.word_rows import Batch, label_arrays, word_width


@dataclass(frozen=True, eq=False)
class DocumentRow:
    """The input of an example: the ids of its text in reading order, and the id of its label if known."""

    example: int
    ids: Int32[np.ndarray, "T"]
    label: int | None = None

    @property
    def width(self) -> int:
        """The number of ids."""
        return len(self.ids)

    def content(self) -> bytes:
        """Return the row as bytes, for fingerprints."""
        return self.ids.tobytes() + b"=%d" % (-1 if self.label is None else self.label)


def make_document_rows(
    examples: Sequence[TextExample],
    read: Callable[[str], Int32[np.ndarray, "_"]],
    labels: Sequence[str],
    *,
    labelled: bool = True,
) -> list[DocumentRow]:
    """Return one row per example; `read` returns the ids of a text."""
    numbers = label_ids(examples, labels).tolist() if labelled else [None] * len(examples)
    return [DocumentRow(n, read(example.text), number) for n, (example, number) in enumerate(zip(examples, numbers))]


def shape_parts(longest: int, part: int) -> tuple[int, int]:
    """Return the number of parts and their width for documents of so many words: few different shapes.

    There are at most three numbers of parts per doubling. Documents that fit into one part have a narrower one.

    >>> shape_parts(9, 70), shape_parts(71, 70), shape_parts(100_000, 70)
    ((1, 16), (2, 70), (1536, 70))
    """
    if longest <= part:
        return 1, min(part, word_width(max(1, longest)))
    count = -(-longest // part)
    unit = max(1, (1 << (count - 1).bit_length()) // 4)
    return -(-count // unit) * unit, part


def collate_documents(rows: Sequence[DocumentRow], height: int, part: int, *, targets: bool = True) -> Batch:
    """Return rows as `words` [height, N, T] and `lengths`, padded with empty rows of weight 0.

    >>> row = DocumentRow(0, np.array([5, 6, 7], np.int32), 1)
    >>> {name: array.shape for name, array in collate_documents([row], 2, 2).items()}
    {'words': (2, 2, 2), 'lengths': (2,), 'labels': (2,), 'weights': (2,)}
    """
    parts, width = shape_parts(max(row.width for row in rows), part)
    words, lengths = np.zeros((height, parts * width), np.int32), np.zeros(height, np.int32)
    for n, row in enumerate(rows):
        words[n, : row.width], lengths[n] = row.ids, row.width
    batch: Batch = {"words": words.reshape(height, parts, width), "lengths": lengths}
    return batch | (label_arrays(rows, height) if targets else {})
