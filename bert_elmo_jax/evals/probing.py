"""Probes: baselines that use only the word, and word senses by the nearest mean vector (Peters et al. 2018)."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float32, Int

CHUNK = 16_384  # rows read at a time from a memory-mapped file
Label = TypeVar("Label", bound=Hashable)


def rank_labels(words: Sequence[str], labels: Sequence[Label]) -> dict[str, list[Label]]:
    """Return the labels of each word, most frequent first."""
    counts: dict[str, Counter[Label]] = {}
    for word, label in zip(words, labels, strict=True):
        counts.setdefault(word, Counter())[label] += 1
    return {word: [label for label, _ in count.most_common()] for word, count in counts.items()}


def by_word(train_words: Sequence[str], train_labels: Sequence[Label], words: Sequence[str]) -> list[Label]:
    """Return the label that each word had most often in training, for an unseen word the most frequent one of all."""
    ranked = rank_labels(train_words, train_labels)
    other = Counter(train_labels).most_common(1)[0][0]
    return [ranked[word][0] if word in ranked else other for word in words]


def accuracy(right: Sequence[Label], predicted: Sequence[Label]) -> float:
    """Return the share of labels that are right."""
    return sum(a == b for a, b in zip(right, predicted, strict=True)) / len(right)


def group_means(
    vectors: Float[np.ndarray, "N D"], groups: Int[np.ndarray, " N"], count: int
) -> Float32[np.ndarray, "G D"]:
    """Return the mean vector of each group, zeros for an empty one; `vectors` may be memory-mapped."""
    sums = np.zeros((count, vectors.shape[1]), np.float64)
    for at in range(0, len(groups), CHUNK):
        chunk = groups[at : at + CHUNK]
        order = np.argsort(chunk, kind="stable")
        present, starts = np.unique(chunk[order], return_index=True)
        if len(present):
            rows = np.asarray(vectors[at : at + CHUNK], np.float64)[order]
            sums[present] += np.add.reduceat(rows, starts, axis=0)
    sums /= np.maximum(np.bincount(groups, minlength=count), 1)[:, None]
    return sums.astype(np.float32)


def first_senses(train_items: Sequence[str], train_senses: Sequence[str], items: Sequence[str]) -> list[str | None]:
    """Return the sense that each item had most often in training, or None if it was not seen."""
    ranked = rank_labels(train_items, train_senses)
    return [ranked[item][0] if item in ranked else None for item in items]


def nearest_senses(
    train: Float[np.ndarray, "N D"],
    train_items: Sequence[str],
    train_senses: Sequence[str],
    test: Float[np.ndarray, "M D"],
    items: Sequence[str],
) -> list[str | None]:
    """Return, for each test vector, the sense of its item whose mean training vector is nearest by cosine.

    Unseen items get None. The more frequent sense wins ties.
    """
    number = {sense: n for n, sense in enumerate(dict.fromkeys(train_senses))}
    means = _unit(group_means(train, np.array([number[sense] for sense in train_senses], np.int64), len(number)))
    ranked = rank_labels(train_items, train_senses)
    rows: dict[str, list[int]] = {}
    for n, item in enumerate(items):
        if item in ranked:
            rows.setdefault(item, []).append(n)
    nearest: list[str | None] = [None] * len(items)
    for item, mine in rows.items():
        senses = ranked[item]
        near = _unit(np.asarray(test[mine], np.float32)) @ means[[number[sense] for sense in senses]].T
        # Differences of rounding count as ties, so that a word without a vector gets its first sense.
        best = np.argmax(near >= near.max(axis=1, keepdims=True) - 1e-6, axis=1)
        for n, sense in zip(mine, best.tolist()):
            nearest[n] = senses[sense]
    return nearest


def _unit(vectors: Float32[np.ndarray, "N D"]) -> Float32[np.ndarray, "N D"]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
