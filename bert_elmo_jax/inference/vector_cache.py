"""A frozen encoder's layers of a task's sentences, computed once for all epochs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.word_rows import Batch, WordRow
from bert_elmo_jax.inference.kept_vectors import KeptVectors, keep_vectors
from bert_elmo_jax.inference.word_encoder import stack_layers
from bert_elmo_jax.inference.word_layers import Encoder

Sentences = Sequence[Sequence[str]]


class VectorCache:
    """The layers of a folder's sentences, read from the disk one sentence at a time."""

    def __init__(self, kept: KeptVectors, sentences: Sentences):
        ends = np.cumsum([0, *map(len, sentences)])
        self._places = {tuple(words): int(at) for words, at in zip(sentences, ends)}
        self._layers = [kept.layer(number) for number in kept.layers]

    def layers(self, words: Sequence[str]) -> Float32[np.ndarray, "L T D"]:
        """Return the layers of a sentence."""
        at = self._places[tuple(words)]
        return np.stack([layer[at : at + len(words)] for layer in self._layers])

    def batch(self, rows: Sequence[WordRow], height: int, width: int) -> Batch:
        """Return the layers of a batch, padded."""
        return stack_layers([self.layers(row.words) for row in rows], height, width)


def fill_cache(
    folder: str | Path, encoder: Encoder, sentences: Sentences, *, progress: bool | None = None
) -> VectorCache:
    """Return the cache in a folder, after computing what it lacks; each distinct sentence is in it once."""
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    return VectorCache(keep_vectors(encoder, distinct, folder, pieces="first", progress=progress), distinct)
