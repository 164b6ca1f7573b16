"""Late interaction: texts are compared piece by piece, each piece of a query with the most similar one of a text.

Khattab and Zaharia 2020, ColBERT, https://arxiv.org/abs/2004.12832. It needs a vector for each piece, so it suits small
collections, or the texts that a search by one vector has found.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.evals.top_k import Hits

CHUNK = 131_072  # pieces of texts that are compared at a time

PieceVectors = Float32[np.ndarray, "_ D"]


def piece_vectors(encoder: Any, texts: Sequence[Any], batch_size: int = 32) -> list[PieceVectors]:
    """Return the last layer's vectors of each text's pieces, special ones included, with length 1.

    A text of more pieces than the model takes is cut.

    >>> from bert_elmo_jax import load
    >>> encoder = load("tests/goldens/bert_tiny")
    >>> [vectors.shape for vectors in piece_vectors(encoder, ["[MASK] [MASK]", "[MASK]"])]
    [(4, 64), (3, 64)]
    """
    encoding = encoder.encode(texts, batch_size=batch_size, pooled=False, overflow="truncate")
    counts = encoding.mask.sum(axis=1)
    vectors = [last[:count] for last, count in zip(encoding.last, counts)]
    return [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in vectors]


class PieceIndex:
    """The pieces of some texts, to score all texts for a query, and to search them.

    >>> texts = [np.eye(3, dtype=np.float32)[:2], np.eye(3, dtype=np.float32)[2:]]
    >>> index = PieceIndex(texts)
    >>> query = np.array([[0.0, 1.0, 0.0], [0.0, 0.6, 0.8]], np.float32)
    >>> index.score([query]).round(2).tolist()
    [[1.600000023841858, 0.800000011920929]]
    """

    def __init__(self, texts: Sequence[PieceVectors]):
        sizes = {x.shape[1] for x in texts}
        if len(sizes) != 1 or any(not len(x) for x in texts):
            raise ValueError(
                f"expected one array [pieces, D] for each text, with at least a piece and all of one width; "
                f"given are {len(texts)} arrays of the widths {sorted(sizes)}"
            )
        self.pieces = np.concatenate(texts)
        self.ends = np.cumsum([len(x) for x in texts])

    def __len__(self) -> int:
        return len(self.ends)

    def score(self, queries: Sequence[PieceVectors]) -> Float32[np.ndarray, "Q N"]:
        """Return Σ over the pieces of a query of the largest dot product with a piece of the text, for all texts."""
        table = np.zeros((len(queries), len(self)), np.float32)
        starts = np.concatenate([[0], self.ends[:-1]])
        first = 0
        while first < len(self):
            # Whole texts, and at least one.
            last = max(first + 1, int(np.searchsorted(self.ends, starts[first] + CHUNK, side="right")))
            pieces, places = self.pieces[starts[first] : self.ends[last - 1]], starts[first:last] - starts[first]
            for row, query in zip(table, queries):
                row[first:last] = np.maximum.reduceat(query @ pieces.T, places, axis=1).sum(axis=0)
            first = last
        return table

    def search(self, queries: Sequence[PieceVectors], count: int = 10) -> Hits:
        """Return the `count` best texts for each query, or all if there are fewer; ties go to the first texts."""
        if count < 1:
            raise ValueError(f"count={count}: expected 1 or more")
        scores = self.score(queries)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        return Hits(order, np.take_along_axis(scores, order, 1))
