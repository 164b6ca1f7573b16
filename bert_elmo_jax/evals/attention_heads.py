"""Which words attention heads attend to most: Clark et al. 2019."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
Arc = tuple[int, int]  # indices of dependant and head


def word_maps(maps: Float[np.ndarray, "*H T T"], word_of: Int[np.ndarray, " T"], words: int) -> np.ndarray:
    """Return attention between words, [*H, words, words], from attention between pieces.

    `word_of` is -1 for special pieces. Attention to a word is the sum over its pieces, attention from it their mean.
    A word without pieces has only zeros.
    """
    member = (np.arange(words)[:, None] == word_of[None, :]).astype(np.float64)
    mean = member / np.maximum(member.sum(axis=1, keepdims=True), 1)
    return np.einsum("wt,...tu,vu->...wv", mean, np.asarray(maps, np.float64), member, optimize=True)


def most_attended(maps: Float[np.ndarray, "*H W W"]) -> Int[np.ndarray, "*H W"]:
    """Return the word that each word attends to most, apart from itself."""
    off_diagonal = np.where(np.eye(maps.shape[-1], dtype=bool), -np.inf, maps)
    return np.argmax(off_diagonal, axis=-1)


def follows(attended: Int[np.ndarray, "*H W"], arcs: Sequence[Arc]) -> Bool[np.ndarray, "2 A *H"]:
    """Return, for each arc and map, if the dependant attends most to its head, and if the head to the dependant."""
    dependants, heads = (np.array(side, np.int64) for side in zip(*arcs))
    moved = np.moveaxis(attended, -1, 0)
    shape = (-1,) + (1,) * (moved.ndim - 1)
    return np.stack([moved[dependants] == heads.reshape(shape), moved[heads] == dependants.reshape(shape)])


def at_offsets(arcs: Sequence[Arc]) -> Bool[np.ndarray, "2 A O"]:
    """Return, for each arc and offset, if the head is at this offset from the dependant, and vice versa."""
    dependants, heads = (np.array(side, np.int64)[:, None] for side in zip(*arcs))
    offsets = np.array(OFFSETS)[None]
    return np.stack([dependants + offsets == heads, heads + offsets == dependants])
