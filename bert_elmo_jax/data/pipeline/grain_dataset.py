"""Batches as a grain dataset, for programs that are built on grain."""

from typing import Any

import grain
import numpy as np

Batch = dict[str, np.ndarray]


class BatchDataset(grain.IterDataset[Batch]):
    """The batches of an iterator with a position, such as `train_batches` or `labelled_batches`, from there on.

    An iterator over it has grain's `get_state` and `set_state`, which are the `state` and `restore` of the batches. All
    iterators share this position. `workers=` of `train_batches` makes batches in processes; do not split this dataset.

    >>> import tempfile
    >>> from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
    >>> from bert_elmo_jax.data.pipeline.batches import train_batches
    >>> from bert_elmo_jax.data.rows.pieces import PieceExamples
    >>> corpus = toy_corpus(tempfile.mkdtemp(), documents=40)
    >>> batches = iter(BatchDataset(train_batches(corpus, PieceExamples(length=32), 4)))
    >>> state, batch = batches.get_state(), next(batches)
    >>> batches.set_state(state)
    >>> bool((next(batches)["tokens"] == batch["tokens"]).all())
    True
    """

    def __init__(self, batches: Any):
        super().__init__()
        self._batches = batches

    def __iter__(self) -> "_BatchIterator":
        return _BatchIterator(self._batches)


class _BatchIterator(grain.DatasetIterator[Batch]):
    def __init__(self, batches: Any):
        super().__init__()
        self._batches = batches

    def __next__(self) -> Batch:
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """Return the position of the next batch."""
        return self._batches.state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue at a position."""
        self._batches.restore(state)
