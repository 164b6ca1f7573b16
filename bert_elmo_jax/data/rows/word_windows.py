"""Rows that train word vectors: words with their neighbours and negatives, or counts of neighbours.

word2vec (Mikolov et al. 2013, https://arxiv.org/abs/1310.4546) and fastText read windows of text, GloVe (Pennington et
al. 2014, https://nlp.stanford.edu/pubs/glove.pdf) reads how often two words are neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from bert_elmo_jax.data.pipeline.windows import Text
from bert_elmo_jax.data.rows.draws import CONTENT, MASKS, ORDER, generator, uniforms
from bert_elmo_jax.data.rows.widths import Shapes
from bert_elmo_jax.text.subwords import Subwords
from bert_elmo_jax.text.words import WORD_SPECIALS, WordVocabulary

POWER, SUBWORD_POWER = 0.75, 0.5  # negatives are drawn by their counts to this power; the second is fastText's
LARGEST = np.iinfo(np.int32).max
SMALLEST = 1024  # entries of the list of a batch's subwords; it is doubled as often as necessary
Batch = dict[str, np.ndarray]
Key = tuple[int, ...]


@dataclass(frozen=True)
class WindowExamples:
    """Settings of rows of words, which are compared with their neighbours and with negatives.

    Args:
        length: words of a row, besides the `window` words on either side, which are neighbours alone.
        window: the largest distance of a neighbour; each word draws its own distance from 1 to this one.
        negatives: words that are drawn for each row, which all of its words share.
        sample: of a word whose share f of the text is larger, only the share sample/f + √(sample/f) is read; 0: all.
        min_count: rarer words are left out, as are those outside of the vocabulary.
        buckets: of fastText's n-grams; 0 reads words alone.
        shortest: characters of an n-gram, with the marks around a word.
        longest: characters of an n-gram.
    """

    length: int = 32
    window: int = 5
    negatives: int = 64
    sample: float = 1e-3
    min_count: int = 5
    buckets: int = 0
    shortest: int = 3
    longest: int = 6

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return the shape and type of every array in a batch; of the list of subwords, its smallest size."""
        shapes: Shapes = dict.fromkeys(("words", "segments"), ((rows, self.length + 2 * self.window), np.int32))
        shapes["reach"] = ((rows, self.length), np.int32)
        shapes["negatives"] = ((rows, self.negatives), np.int32)
        if self.buckets:
            lists = (shards, SMALLEST)
            shapes |= {"places": shapes["reach"], "subwords": (lists, np.int32), "owners": (lists, np.int32)}
        return shapes


@dataclass(frozen=True)
class CountExamples:
    """Settings of rows of pairs of words, with the sum of 1 / distance over all places where they are neighbours.

    Pairs are counted in one window of the pipeline, which is the whole text if it has fewer than 16 million words.
    """

    length: int = 1024  # pairs of a row
    window: int = 10
    min_count: int = 5

    def shapes(self, rows: int, shards: int = 1) -> Shapes:
        """Return the shape and type of every array in a batch; padding has the count 0."""
        del shards
        shape = (rows, self.length)
        return {"words": (shape, np.int32), "neighbours": (shape, np.int32), "counts": (shape, np.float32)}


@dataclass(frozen=True)
class Frequencies:
    """For each word of a vocabulary the probability that a place is read, and cumulated shares of the negatives."""

    read_shares: Float32[np.ndarray, " V"]
    ends: Float64[np.ndarray, " V"]

    @classmethod
    def of(
        cls,
        vocabulary: WordVocabulary,
        min_count: int,
        sample: float = 0.0,
        corpora: Sequence[tuple[np.ndarray | None, float]] = ((None, 1.0),),
        power: float = POWER,
    ) -> "Frequencies":
        """Compute them from the counts of each corpus and the weight that its text is read with.

        None stands for the counts of the vocabulary. `min_count` is of all corpora together. Raise if fewer than two
        words are frequent enough.

        >>> words = WordVocabulary.build({"sea": 900, "배": 100, "rare": 1})
        >>> Frequencies.of(words, min_count=5, sample=0.1).read_shares.round(2).astype(str).tolist()
        ['0.0', '0.0', '0.0', '0.44', '1.0', '0.0']
        """
        if vocabulary.counts is None and any(table is None for table, _ in corpora):
            raise ValueError("the vocabulary has no counts.npy, which sampling needs: prepare the corpus again")
        tables = [np.asarray(vocabulary.counts if table is None else table, np.float64) for table, _ in corpora]
        occurrences = np.stack(tables).sum(axis=0)
        counts = occurrences.copy()  # of one corpus, whatever its weight
        if len(corpora) > 1:
            counts = np.stack([w * t / max(t.sum(), 1) for t, (_, w) in zip(tables, corpora)]).sum(axis=0)
        counts[: len(WORD_SPECIALS)] = 0
        counts[occurrences < min_count] = 0
        if (counts > 0).sum() < 2:
            raise ValueError(
                f"{(counts > 0).sum()} of {len(counts) - len(WORD_SPECIALS)} words of the vocabulary occur "
                f"{min_count} times or more, and vectors need two: give more text, or a lower --config.min_count"
            )
        shares = counts / counts.sum()
        ratio = np.where(shares > 0, sample / np.where(shares > 0, shares, 1.0), 0.0)
        read_shares = np.minimum(1.0, np.sqrt(ratio) + ratio) if sample else (counts > 0).astype(np.float64)
        ends = np.cumsum(counts**power)
        return cls(read_shares.astype(np.float32), ends / ends[-1])


@dataclass(frozen=True)
class WindowRows:
    """The rows of a window of text, in their final order, with W words on either side of each.

    Segments number the sentences of a row from 1; padding has the segment and the reach 0.
    """

    words: Int32[np.ndarray, "N T_plus_2W"]
    segments: Int32[np.ndarray, "N T_plus_2W"]
    reach: Int32[np.ndarray, "N T"]
    key: Key

    def __len__(self) -> int:
        return len(self.words)


def plan_window_rows(text: Text, examples: WindowExamples, frequencies: Frequencies, key: Key) -> WindowRows:
    """Draw the words of a window that are read, and cut them into rows in random order; no row without neighbours."""
    words, sentences = read_words(text, frequencies, generator(*key, CONTENT))
    if not (np.diff(sentences) == 0).any():
        words, sentences = words[:0], sentences[:0]
    reach = generator(*key, MASKS).integers(1, examples.window + 1, len(words))
    count = -(-len(words) // examples.length)
    first = generator(*key, ORDER).permutation(count)[:, None] * examples.length

    def cut(values: np.ndarray, margin: int) -> Int32[np.ndarray, "N _"]:
        padded = np.zeros(count * examples.length + 2 * margin, np.int32)
        padded[margin : margin + len(values)] = values
        return padded[first + np.arange(examples.length + 2 * margin)]

    segments = cut(sentences + 1, examples.window)
    lowest = np.where(segments > 0, segments, LARGEST).min(axis=1, keepdims=True)
    segments = np.where(segments > 0, segments - lowest + 1, 0).astype(np.int32)
    return WindowRows(cut(words, examples.window), segments, cut(reach, 0), key)


def read_words(
    text: Text, frequencies: Frequencies, draws: np.random.Generator | None = None
) -> tuple[Int64[np.ndarray, " N"], Int64[np.ndarray, " N"]]:
    """Return the words that are read, and the number of the sentence of each."""
    size = len(frequencies.read_shares)
    words = np.minimum(text.tokens.astype(np.int64), size - 1)
    read_shares = frequencies.read_shares[words]
    read_shares[np.asarray(text.tokens) >= size] = 0
    mask = read_shares > 0 if draws is None else draws.random(len(words), np.float32) < read_shares
    sentences = np.repeat(np.arange(len(text.sentences) - 1), np.diff(text.sentences))
    return words[mask], sentences[mask]


def window_batch(rows: WindowRows, first: int, end: int, *, examples: WindowExamples, ends: np.ndarray) -> Batch:
    """Return some rows as a batch, with the negatives of each."""
    draws = uniforms((*rows.key, MASKS, ORDER), first, end - first, examples.negatives)
    negatives = np.searchsorted(ends, draws, side="right").astype(np.int32)
    part = slice(first, end)
    return {
        "words": rows.words[part], "segments": rows.segments[part], "reach": rows.reach[part], "negatives": negatives,
    }  # fmt: skip


class SubwordLists:
    """Adds to a batch the rows of the n-grams of its words, each distinct word once per shard.

    `subwords` [shards, N] are rows of the table of vectors, `owners` [shards, N] the distinct word of each in ascending
    order (of padding N - 1, which is no word), and `places` [rows, T] the distinct word of each word.
    """

    def __init__(self, words: Sequence[str], examples: WindowExamples):
        subwords = Subwords(len(words), examples.buckets, examples.shortest, examples.longest)
        self.rows, self.ends = subwords.table(words)

    def __call__(self, batch: Batch, shards: int) -> Batch:
        """Return the batch with the three arrays."""
        length = batch["reach"].shape[1]
        margin = (batch["words"].shape[1] - length) // 2
        parts = [self._list(words) for words in np.split(batch["words"][:, margin : margin + length], shards)]
        longest = max(len(rows) for rows, _, _ in parts)
        size = SMALLEST
        while size <= longest:
            size *= 2
        subwords, owners = np.zeros((shards, size), np.int32), np.full((shards, size), size - 1, np.int32)
        for n, (rows, owner, _) in enumerate(parts):
            subwords[n, : len(rows)], owners[n, : len(rows)] = rows, owner
        places = np.concatenate([place for _, _, place in parts]).astype(np.int32)
        return batch | {"subwords": subwords, "owners": owners, "places": places}

    def _list(self, words: Int32[np.ndarray, "R T"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        distinct, places = np.unique(words, return_inverse=True)
        begin, counts = self.ends[distinct], np.diff(self.ends)[distinct]
        owner = np.repeat(np.arange(len(distinct)), counts)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.rows[begin[owner] + inside], owner, places.reshape(words.shape)


@dataclass(frozen=True)
class CountRows:
    """The pairs of neighbours of a window of text in random order, cut into rows."""

    words: Int32[np.ndarray, " P"]
    neighbours: Int32[np.ndarray, " P"]
    counts: Float32[np.ndarray, " P"]
    length: int

    def __len__(self) -> int:
        return -(-len(self.words) // self.length)


def plan_count_rows(text: Text, examples: CountExamples, frequencies: Frequencies, key: Key) -> CountRows:
    """Count the neighbours in a window of text; each pair is counted in both orders."""
    words, sentences = read_words(text, frequencies)
    size = len(frequencies.read_shares)
    pairs, counts = np.zeros(0, np.int64), np.zeros(0, np.float64)
    for distance in range(1, examples.window + 1):
        together = sentences[distance:] == sentences[:-distance]
        left, right = words[:-distance][together], words[distance:][together]
        new, times = np.unique(np.concatenate([left * size + right, right * size + left]), return_counts=True)
        pairs, place = np.unique(np.concatenate([pairs, new]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, times / distance]), len(pairs)).astype(np.float64)
    order = generator(*key, ORDER).permutation(len(pairs))
    pairs, counts = pairs[order], counts[order]
    return CountRows(
        (pairs // size).astype(np.int32), (pairs % size).astype(np.int32), counts.astype(np.float32), examples.length
    )


def count_batch(rows: CountRows, first: int, end: int) -> Batch:
    """Return some rows of pairs as a batch."""
    batch = {}
    for name in ("words", "neighbours", "counts"):
        values = getattr(rows, name)[first * rows.length : end * rows.length]
        batch[name] = np.zeros((end - first) * rows.length, values.dtype)
        batch[name][: len(values)] = values
        batch[name] = batch[name].reshape(end - first, rows.length)
    return batch
