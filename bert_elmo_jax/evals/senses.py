"""Which sense a word has, by the nearest of its senses' mean vectors (Melamud et al. 2016; Peters et al. 2018)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int

CHUNK = 16_384  # rows of a large file that are read together


def group_means(
    vectors: Float[np.ndarray, "N D"], groups: Int[np.ndarray, " N"], count: int
) -> Float32[np.ndarray, "G D"]:
    """The mean of the vectors of each group, zeros of an empty one; the vectors may be a file mapped into memory.

    >>> group_means(np.array([[1.0], [3.0], [5.0]]), np.array([1, 1, 0]), 3).tolist()
    [[5.0], [2.0], [0.0]]
    """
    sums = np.zeros((count, vectors.shape[1]), np.float64)
    for at in range(0, len(groups), CHUNK):
        some = groups[at : at + CHUNK]
        order = np.argsort(some, kind="stable")
        present, starts = np.unique(some[order], return_index=True)
        if len(present):
            rows = np.asarray(vectors[at : at + CHUNK], np.float64)[order]
            sums[present] += np.add.reduceat(rows, starts, axis=0)
    sums /= np.maximum(np.bincount(groups, minlength=count), 1)[:, None]
    return sums.astype(np.float32)


def first_senses(train_items: Sequence[str], train_senses: Sequence[str], items: Sequence[str]) -> list[str | None]:
    """The sense that each item had most often in training, None where it was not seen.

    >>> first_senses(["배", "배", "배"], ["배%1", "배%2", "배%2"], ["배", "눈"])
    ['배%2', None]
    """
    known = _candidates(train_items, train_senses)
    return [known[item][0] if item in known else None for item in items]


def nearest_senses(
    train: Float[np.ndarray, "N D"],
    train_items: Sequence[str],
    train_senses: Sequence[str],
    test: Float[np.ndarray, "M D"],
    items: Sequence[str],
) -> list[str | None]:
    """For each test vector the sense, among those its item had in training, whose mean is nearest by cosine.

    None where the item was not seen in training. Of equally near senses it is the more frequent one.

    >>> train = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    >>> nearest_senses(train, ["배"] * 3, ["ship", "pear", "pear"], np.array([[0.2, 0.9], [1.0, 1.0]]), ["배", "눈"])
    ['pear', None]
    """
    if not len(train) == len(train_items) == len(train_senses) or len(test) != len(items):
        raise ValueError(
            f"{len(train)} vectors, {len(train_items)} items and {len(train_senses)} senses of training, {len(test)} "
            f"vectors and {len(items)} items to test: give as many of each"
        )
    number = {sense: n for n, sense in enumerate(dict.fromkeys(train_senses))}
    means = _unit(group_means(train, np.array([number[sense] for sense in train_senses], np.int64), len(number)))
    known = _candidates(train_items, train_senses)
    rows: dict[str, list[int]] = {}
    for n, item in enumerate(items):
        if item in known:
            rows.setdefault(item, []).append(n)
    found: list[str | None] = [None] * len(items)
    for item, mine in rows.items():
        senses = known[item]
        near = _unit(np.asarray(test[mine], np.float32)) @ means[[number[sense] for sense in senses]].T
        # What differs in the last digits only is the same: a word without any vector then has its first sense.
        best = np.argmax(near >= near.max(axis=1, keepdims=True) - 1e-6, axis=1)
        for n, sense in zip(mine, best.tolist()):
            found[n] = senses[sense]
    return found


def _candidates(items: Sequence[str], senses: Sequence[str]) -> dict[str, list[str]]:
    """The senses of each item, most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for item, sense in zip(items, senses):
        counts.setdefault(item, Counter())[sense] += 1
    return {item: [sense for sense, _ in count.most_common()] for item, count in counts.items()}


def _unit(vectors: Float32[np.ndarray, "N D"]) -> Float32[np.ndarray, "N D"]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
