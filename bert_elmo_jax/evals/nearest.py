"""Nearest neighbours by cosine, how well centroids tell groups apart, and the plane of most variance."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

CHUNK = 16_384  # rows read at a time from a memory-mapped file


def neighbours(
    vectors: Float[np.ndarray, "N D"], query: Float[np.ndarray, " D"], count: int
) -> list[tuple[int, float]]:
    """Return (row, cosine) of the vectors nearest to `query`, nearest first; `vectors` may be memory-mapped.

    Zeros, such as static vectors of unknown words, are near to nothing.
    """
    near = np.concatenate(
        [_cosines(np.asarray(vectors[at : at + CHUNK], np.float64), query) for at in range(0, len(vectors), CHUNK)]
        or [np.zeros(0)]
    )
    order = np.argsort(-np.round(near, 6), kind="stable")[:count]
    return [(int(row), round(float(near[row]), 3)) for row in order if near[row] > -np.inf]


def centroid_accuracy(vectors: Float[np.ndarray, "N D"], groups: Sequence[str], *, seed: int = 0) -> float:
    """Return the accuracy of the nearest centroid: half of each group is classified by the centroids of the others."""
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    counts = np.bincount(numbers, minlength=len(names))
    if len(names) < 2 or counts.min() < 2:
        raise ValueError(
            f"groups of {dict(zip(names.tolist(), counts.tolist()))} vectors: expected at least two groups of two"
        )
    values = np.asarray(vectors, np.float64)
    order = np.random.default_rng(seed).permutation(len(values))
    train = np.zeros(len(values), bool)
    for n in range(len(names)):
        mine = order[numbers[order] == n]
        train[mine[: len(mine) // 2]] = True
    centroids = np.stack([values[train & (numbers == n)].mean(axis=0) for n in range(len(names))])
    test = values[~train]
    apart = np.square(test).sum(axis=1)[:, None] - 2 * test @ centroids.T + np.square(centroids).sum(axis=1)[None]
    return float(np.mean(apart.argmin(axis=1) == numbers[~train]))


def principal_plane(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    """Return the first two principal components of vectors, with signs that make the largest weights positive."""
    centred = vectors - vectors.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)[:, None]
    plane = centred @ directions.T
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))


def _cosines(rows: Float[np.ndarray, "n D"], query: Float[np.ndarray, " D"]) -> Float[np.ndarray, " n"]:
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return np.where(lengths > 0, rows @ np.asarray(query, np.float64) / np.maximum(lengths, 1e-12), -np.inf)
