"""Word-sense disambiguation by the nearest mean vector: Melamud et al. 2016, Peters et al. 2018."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int

from bert_elmo_jax.evals.probing import rank_labels

CHUNK = 16_384  # rows read at a time from a memory-mapped file


def group_means(
    vectors: Float[np.ndarray, "N D"], groups: Int[np.ndarray, " N"], count: int
) -> Float32[np.ndarray, "G D"]:
    """Return the mean vector of each group, zeros for an empty one; `vectors` may be memory-mapped."""
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
    """Return the sense that each item had most often in training, or None if it was not seen."""
    known = rank_labels(train_items, train_senses)
    return [known[item][0] if item in known else None for item in items]


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
    if not len(train) == len(train_items) == len(train_senses) or len(test) != len(items):
        raise ValueError(
            f"{len(train)} vectors, {len(train_items)} items and {len(train_senses)} senses for training, {len(test)} "
            f"vectors and {len(items)} items for testing: expected equal numbers"
        )
    number = {sense: n for n, sense in enumerate(dict.fromkeys(train_senses))}
    means = _unit(group_means(train, np.array([number[sense] for sense in train_senses], np.int64), len(number)))
    known = rank_labels(train_items, train_senses)
    rows: dict[str, list[int]] = {}
    for n, item in enumerate(items):
        if item in known:
            rows.setdefault(item, []).append(n)
    found: list[str | None] = [None] * len(items)
    for item, mine in rows.items():
        senses = known[item]
        near = _unit(np.asarray(test[mine], np.float32)) @ means[[number[sense] for sense in senses]].T
        # Differences of rounding count as ties, so that a word without a vector gets its first sense.
        best = np.argmax(near >= near.max(axis=1, keepdims=True) - 1e-6, axis=1)
        for n, sense in zip(mine, best.tolist()):
            found[n] = senses[sense]
    return found


def _unit(vectors: Float32[np.ndarray, "N D"]) -> Float32[np.ndarray, "N D"]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
