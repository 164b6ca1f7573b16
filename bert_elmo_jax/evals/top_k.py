"""Exact search of a corpus: the vectors nearest to queries by cosine or dot product, in chunks of a memory-mapped file.

The vectors are an array, or a `.npy` file written by `write_vectors`: float32, or float16 for half of the disk.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy.lib.format import open_memmap

CHUNK = 65_536  # vectors that are compared at a time

Similarity = Literal["cosine", "dot"]


class Hits(NamedTuple):
    """The rows of the nearest vectors of each query, nearest first, and their similarities."""

    rows: Int64[np.ndarray, "Q K"]
    scores: Float32[np.ndarray, "Q K"]


class VectorIndex:
    """Vectors to search, an array or a file; the vectors of a file stay on disk.

    The first search by cosine reads all vectors once to compute their lengths, and keeps the lengths.

    >>> index = VectorIndex(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], np.float32))
    >>> hits = index.search(np.array([[0.0, 1.0]], np.float32), count=2)
    >>> hits.rows.tolist(), hits.scores.round(2).tolist()
    ([[1, 2]], [[1.0, 0.7099999785423279]])
    """

    def __init__(self, vectors: str | Path | Float[np.ndarray, "N D"]):
        self.vectors = np.load(vectors, mmap_mode="r") if isinstance(vectors, str | Path) else vectors
        if self.vectors.ndim != 2 or self.vectors.dtype.kind != "f" or not len(self.vectors):
            shape = f"{self.vectors.dtype} of shape {self.vectors.shape}"
            raise ValueError(f"vectors are {shape}; expected floats, [N, D], and at least one")
        self._lengths: Float32[np.ndarray, "N"] | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"VectorIndex({len(self):,} × {self.vectors.shape[1]}, {self.vectors.dtype})"

    def search(self, queries: Float[np.ndarray, "Q D"], count: int = 10, similarity: Similarity = "cosine") -> Hits:
        """Return the `count` vectors nearest to each query, or all if there are fewer; ties go to the first rows.

        Vectors with NaN come last.
        """
        if similarity not in ("cosine", "dot"):
            raise ValueError(f"similarity={similarity!r} is not known; use 'cosine' or 'dot'")
        if count < 1:
            raise ValueError(f"count={count}: expected 1 or more")
        query_vectors = np.asarray(queries, np.float32)
        if query_vectors.ndim != 2 or query_vectors.shape[1] != self.vectors.shape[1]:
            raise ValueError(f"queries have shape {query_vectors.shape}; expected [Q, {self.vectors.shape[1]}]")
        _check_finite(query_vectors, "query")
        if similarity == "cosine":
            query_vectors = query_vectors / np.maximum(np.linalg.norm(query_vectors, axis=1, keepdims=True), 1e-12)
        lengths = self._find_lengths() if similarity == "cosine" else None
        best = Hits(np.zeros((len(query_vectors), 0), np.int64), np.zeros((len(query_vectors), 0), np.float32))
        for at in range(0, len(self), CHUNK):
            scores = query_vectors @ np.asarray(self.vectors[at : at + CHUNK], np.float32).T
            if lengths is not None:
                scores /= lengths[at : at + CHUNK]
            rows = np.broadcast_to(np.arange(at, at + scores.shape[1]), scores.shape)
            best = _keep(best, *_keep(Hits(rows, scores), None, None, count), count)
        return best

    def _find_lengths(self) -> Float32[np.ndarray, "N"]:
        if self._lengths is None:
            chunks = (np.asarray(self.vectors[at : at + CHUNK], np.float32) for at in range(0, len(self), CHUNK))
            self._lengths = np.concatenate([np.maximum(np.linalg.norm(chunk, axis=1), 1e-12) for chunk in chunks])
        return self._lengths


def _keep(
    hits: Hits, rows: Int64[np.ndarray, "Q M"] | None, scores: Float32[np.ndarray, "Q M"] | None, count: int
) -> Hits:
    """Return the best of some hits and of further rows, best first."""
    if rows is not None and scores is not None:
        hits = Hits(np.concatenate([hits.rows, rows], axis=1), np.concatenate([hits.scores, scores], axis=1))
    if hits.scores.shape[1] > count:
        # All that reach the last kept score, so that ties are decided by the row and not by the partition. NaN is
        # chosen, too, and sorted last.
        least = -np.partition(-hits.scores, count - 1, axis=1)[:, count - 1]
        chosen = [np.flatnonzero(~(line < low)) for line, low in zip(hits.scores, least)]
        order = [near[np.argsort(-line[near], kind="stable")][:count] for near, line in zip(chosen, hits.scores)]
    else:
        order = [np.argsort(-line, kind="stable") for line in hits.scores]
    places = np.stack(order) if order else np.zeros(hits.rows.shape, np.int64)
    return Hits(np.take_along_axis(hits.rows, places, 1), np.take_along_axis(hits.scores, places, 1))


def _check_finite(vectors: Float[np.ndarray, "N D"], name: str, first: int = 0) -> None:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = first + int(finite.argmin())
        raise ValueError(f"{name} {row} has NaN or infinity; expected finite numbers: compute it again or leave it out")


def write_vectors(
    path: str | Path,
    parts: Iterable[Float[np.ndarray, "n D"]],
    count: int,
    dtype: Literal["float32", "float16"] = "float32",
) -> Path:
    """Write `count` vectors that come in parts to a `.npy` file, with only one part in memory, and return its path.

    The file appears under its name when it is complete.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.npy"
    >>> len(VectorIndex(write_vectors(path, iter([np.ones((2, 4)), np.zeros((1, 4))]), count=3, dtype="float16")))
    3
    """
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"{path}: expected a name that ends in .npy")
    if dtype not in ("float32", "float16"):
        raise ValueError(f"dtype={dtype!r} is not known; use 'float32' or 'float16'")
    partial = path.with_name(f"{path.name}.partial")
    file: np.memmap | None = None
    done = 0
    try:
        for part in parts:
            if file is None:
                file = open_memmap(partial, mode="w+", dtype=dtype, shape=(count, part.shape[1]))
            if done + len(part) > count:
                raise ValueError(f"more than {count:,} vectors were given for {path}")
            if not np.abs(part).max(initial=0) <= np.finfo(dtype).max:  # also with NaN, which is not greater
                _check_finite(part, "vector", done)
                raise ValueError(f"a vector has numbers that are too large for {dtype}: use float32")
            file[done : done + len(part)] = part
            done += len(part)
        if file is None or done < count:
            raise ValueError(f"{done:,} vectors were given for {path}, expected {count:,}")
        file.flush()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
