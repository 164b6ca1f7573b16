"""The n-grams of words that fastText hashes into buckets (Bojanowski et al. 2017, https://arxiv.org/abs/1607.04606)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64


class Subwords(NamedTuple):
    """The buckets of n-grams of `shortest` to `longest` characters of `<word>`; their rows follow `first`, the words'.

    >>> Subwords(first=10, buckets=1000, shortest=3, longest=4).grams("배")
    ['<배>']
    """

    first: int
    buckets: int
    shortest: int = 3
    longest: int = 6

    def grams(self, word: str) -> list[str]:
        """Return the n-grams of a word between `<` and `>`."""
        marked = f"<{word}>"
        return [
            marked[start : start + size]
            for start in range(len(marked))
            for size in range(self.shortest, min(self.longest, len(marked) - start) + 1)
            if not (size == 1 and start in (0, len(marked) - 1))
        ]

    def rows(self, word: str) -> list[int]:
        """Return the rows of the n-grams of a word in the table of vectors; fastText's end of a line has none."""
        if not self.buckets or word == "</s>":
            return []
        return [self.first + hash_gram(gram.encode("utf-8", "replace")) % self.buckets for gram in self.grams(word)]

    def table(self, words: Sequence[str]) -> tuple[Int64[np.ndarray, " N"], Int64[np.ndarray, "words_plus_one"]]:
        """Return the rows of each word, first its number, and the bounds of each word in this list."""
        rows = [[number, *self.rows(word)] for number, word in enumerate(words)]
        ends = np.cumsum([0, *map(len, rows)])
        return np.fromiter((row for of_word in rows for row in of_word), np.int64, int(ends[-1])), ends


def hash_gram(gram: bytes) -> int:
    """Return fastText's hash, FNV-1a of 32 bits with each byte extended by its sign.

    >>> hash_gram(b"<a>"), hash_gram("배".encode())
    (2359087600, 921638842)
    """
    value = 2166136261
    for byte in gram:
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value
