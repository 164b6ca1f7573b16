"""Find near-duplicates: MinHash signatures of shingles of words, compared where a band of them is equal.

The similarity of two documents is the share of their shingles that they have in common (Jaccard). A shingle is five
words in a row: words between spaces, without case and punctuation. Each hash function keeps its smallest value over a
document's shingles; two documents agree on it with a probability that is their similarity (Broder 1997). The share of
functions on which they agree is the estimate that is compared with the threshold. Only documents that agree on all rows
of some band are compared at all, so the work grows with the corpus, not with its square.
"""

import hashlib
import itertools
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Integer

SHINGLE = 5  # words
SHINGLE_BITS = 64  # 32 in earlier versions, which left out a few unlike documents of one shingle
HASHES = 128  # hash functions, at most
CANDIDATE_RECALL = 0.97  # of the bands, at the threshold
WORD = re.compile(r"\w+")
STORED_WORDS = 1 << 20
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class WordHashes(dict[str, int]):
    """A table word -> 64 bits, the same on every machine, without case and punctuation; it forgets all when it is full.

    >>> table = WordHashes()
    >>> table["Bank!"] == table["bank"], table["은행"] == table["은행에"], table["?!"] == table["..."]
    (True, False, False)
    """

    def __missing__(self, word: str) -> int:
        if len(self) >= STORED_WORDS:
            self.clear()
        lower = unicodedata.normalize("NFC", word).lower()
        plain = "".join(WORD.findall(lower)) or lower
        digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.setdefault(word, int.from_bytes(digest, "little"))


def hash_shingles(
    documents: Sequence[Sequence[str]], size: int, table: WordHashes
) -> tuple[Integer[np.ndarray, "shingles"], Integer[np.ndarray, "documents"]]:
    """Return 64 bits for each run of `size` words, and the first shingle of each document.

    A document of fewer words is one shingle.

    >>> shingles, starts = hash_shingles([list("abcd"), ["a"], list("bcd")], 3, WordHashes())
    >>> starts.tolist(), bool(shingles[1] == shingles[3])
    ([0, 2, 3], True)
    """
    padded = [words if len(words) >= size else [*words, *[""] * (size - len(words))] for words in documents]
    lengths = np.array([len(words) for words in padded], np.int64)
    hashes = np.fromiter(map(table.__getitem__, itertools.chain.from_iterable(padded)), np.uint64, int(lengths.sum()))
    counts = lengths - size + 1
    starts = np.cumsum(counts) - counts
    # The k-th shingle of all begins (size - 1) words later for each document before its own.
    first_words = np.arange(counts.sum()) + np.repeat(np.arange(len(padded)) * (size - 1), counts)
    total = np.zeros(len(first_words), np.uint64)
    for place in range(size):  # a polynomial in an odd number, modulo 2**64
        total = total * GOLDEN + hashes[first_words + place]
    return mix_bits(total), starts


def mix_bits(values: Integer[np.ndarray, "n"]) -> Integer[np.ndarray, "n"]:
    """Return 64-bit values whose high bits depend on all bits."""
    values = (values ^ (values >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return values ^ (values >> np.uint64(29))


def choose_bands(threshold: float) -> tuple[int, int]:
    """Return (bands, rows of each), with the most rows that still let 97% of pairs at the threshold share a band.

    >>> choose_bands(0.8), choose_bands(0.5)
    ((18, 7), (42, 3))
    """
    for rows in range(16, 1, -1):
        if 1 - (1 - threshold**rows) ** (HASHES // rows) >= CANDIDATE_RECALL:
            return HASHES // rows, rows
    return HASHES, 1


def needed_matches(threshold: float) -> int:
    """Return on how many hash functions near-duplicates agree.

    >>> needed_matches(0.8), needed_matches(1.0)
    (101, 128)
    """
    return math.ceil(threshold * math.prod(choose_bands(threshold)) - 1e-9)


def expected_recall(similarity: float, threshold: float) -> float:
    """Return the probability that a pair of this similarity is found.

    It is found if enough functions agree, and all functions of some band do. At the threshold itself, the chance that
    enough functions agree is about even.

    >>> [round(expected_recall(similarity, 0.8), 3) for similarity in (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)]
    [0.0, 0.007, 0.106, 0.535, 0.946, 1.0, 1.0]
    """
    bands, rows = choose_bands(threshold)
    size = bands * rows
    total = 0.0
    for matches in range(needed_matches(threshold), size + 1):
        # Of the ways to place the matches, count those that fill some band, by inclusion and exclusion.
        ways = sum(
            (-1) ** (full + 1) * math.comb(bands, full) * math.comb(size - full * rows, matches - full * rows)
            for full in range(1, matches // rows + 1)
        )
        share = float(Fraction(ways, math.comb(size, matches)))
        total += share * math.comb(size, matches) * similarity**matches * (1 - similarity) ** (size - matches)
    return total


def make_signatures(
    shingles: Integer[np.ndarray, "shingles"], starts: Integer[np.ndarray, "documents"], threshold: float
) -> Integer[np.ndarray, "bands documents rows"]:
    """Return the smallest value of each hash function over the shingles of each document.

    The functions are x -> ax + b modulo 2**32. The shingles are random bits already, so all shingles of a document are
    equally likely to have the smallest value. x is the first or the second half of a shingle's bits, in turn: among
    millions of documents of one shingle, some have the same half, but then they differ in the other rows of each band.
    """
    bands, rows = choose_bands(threshold)
    size = bands * rows
    numbers = np.frombuffer(hashlib.shake_128(b"minhash").digest(8 * size), "<u4").astype(np.uint32)
    halves = (shingles >> np.uint64(32)).astype(np.uint32), shingles.astype(np.uint32)
    values, smallest = np.empty(len(shingles), np.uint32), np.empty((size, len(starts)), np.uint32)
    for n, (factor, shift) in enumerate(zip(numbers[:size] | np.uint32(1), numbers[size:])):
        np.multiply(halves[n % 2], factor, out=values)
        np.add(values, shift, out=values)
        np.minimum.reduceat(values, starts, out=smallest[n])
    return smallest.reshape(bands, rows, -1).transpose(0, 2, 1)


def band_keys(band: Integer[np.ndarray, "documents rows"]) -> Integer[np.ndarray, "documents"]:
    """Return one number for the rows of a band; it is equal where all rows are."""
    keys = np.zeros(len(band), np.uint64)
    for row in range(band.shape[1]):
        keys = mix_bits(keys * GOLDEN + band[:, row])
    return keys


def pair_equal_keys(
    keys: Integer[np.ndarray, "n"], documents: Integer[np.ndarray, "n"]
) -> tuple[Integer[np.ndarray, "pairs"], Integer[np.ndarray, "pairs"], Integer[np.ndarray, "pairs"]]:
    """Return (member, the first of its key, the one before it) for every document that is not the first of its key.

    >>> [a.tolist() for a in pair_equal_keys(np.array([7, 3, 7, 7], np.uint64), np.arange(4))]
    [[2, 3], [0, 0], [0, 2]]
    """
    order = np.argsort(keys, kind="stable")
    ordered, documents = keys[order], documents[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    opens = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    firsts = np.flatnonzero(opens)[np.cumsum(opens)[repeats] - 1]
    return documents[repeats], documents[firsts], documents[repeats - 1]


def merge_links(links: Iterator[Integer[np.ndarray, "pairs 2"]]) -> Integer[np.ndarray, "duplicates 2"]:
    """Return (document, the first of its cluster) for all that are not the first, sorted; links join clusters.

    Memory grows with the number of near-duplicates, not with the number of links.

    >>> merge_links(iter([np.array([[4, 2], [9, 8]]), np.array([[2, 1]])])).tolist()
    [[2, 1], [4, 1], [9, 8]]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    stars = np.zeros((0, 2), np.int64)
    for more in links:
        documents, places = np.unique(np.concatenate([stars, more]), return_inverse=True)
        if not len(documents):
            continue
        ends = places.reshape(-1, 2)
        size = len(documents)
        graph = coo_array((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), shape=(size, size))
        labels = connected_components(graph, directed=False)[1]
        _, first_places = np.unique(labels, return_index=True)  # documents are sorted
        firsts = documents[first_places][labels]
        stars = np.stack([documents, firsts], axis=1)[documents != firsts]
    return stars
