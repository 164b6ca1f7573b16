"""The encoder of static vectors: the same vector for a word in every sentence, with its neighbours and analogies."""

import csv
import dataclasses
import functools
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.encoders.arguments import check_whole
from bert_elmo_jax.encoders.rows import Words
from bert_elmo_jax.encoders.word_encoder import WordEncoder
from bert_elmo_jax.evals.glue import spearman
from bert_elmo_jax.families.static.config import StaticConfig
from bert_elmo_jax.families.static.model import Static, find_untrained
from bert_elmo_jax.files import read_text
from bert_elmo_jax.text.subwords import Subwords
from bert_elmo_jax.text.vector_files import VectorFormat, write_vectors
from bert_elmo_jax.text.words import WORD_SPECIALS, WordVocabulary

CHUNK = 4096  # words whose rows are added at once


class Neighbour(NamedTuple):
    """A word and the cosine of its vector with the requested one."""

    word: str
    similarity: float


class StaticEncoder(WordEncoder):
    """Words and their vectors; made by `load`, from a run directory or from a file of vectors.

    Unknown words have zeros, or with fastText's n-grams the mean of the n-grams' vectors.

    >>> from bert_elmo_jax import load
    >>> vectors = load("tests/goldens/static_tiny/gensim.bin")
    >>> vectors.vector("river").shape, vectors.encode(["the river"]).last.shape
    ((16,), (1, 2, 16))
    >>> [neighbour.word for neighbour in vectors.neighbours("river", top=2)]
    ['은행', 'boat']
    """

    def __init__(self, config: StaticConfig, params: Mapping[str, Any], reads: Any = None, source: str = "weights"):
        if reads is not None and "context" in params:
            config, params, reads = drop_untrained_words(config, params, reads)
        if config.method == "glove" and "context" in params:  # the published vectors are the sums of both tables
            context = {name: np.asarray(rows) for name, rows in params["context"].items()}
            # Neighbours that no step has read have a bias of zero, and vectors that are still random.
            read = np.where(context["bias"][:, None] != 0, context["embedding"], 0)
            params = {"encoder": {"embeddings": {"word": np.asarray(params["encoder"]["embeddings"]["word"]) + read}}}
        super().__init__(config, params, reads, source)
        self._subwords = Subwords(config.vocab_size, config.gram_rows, config.shortest, config.longest)

    def _build_module(self) -> Any:
        return Static(self.config)

    def __repr__(self) -> str:
        words = self.config.vocab_size - len(WORD_SPECIALS)
        return f"StaticEncoder({self.source}: {words:,} words × {self.config.hidden_size}, {self.config.method})"

    def check_words(self) -> None:
        """Raise if the vocabulary is missing."""
        self.vocabulary  # noqa: B018 -- raises

    @property
    def vocabulary(self) -> WordVocabulary:
        """The vocabulary: three marks, then the words."""
        if self._reads is None:
            raise ValueError(f"{self.source} has no vocabulary: copy its words.txt there")
        return self._reads

    @property
    def words(self) -> tuple[str, ...]:
        """The words, without the marks."""
        return self.vocabulary.words[len(WORD_SPECIALS) :]

    def __contains__(self, word: str) -> bool:
        return word in self.vocabulary and bool(self.vectors_of([word]).any())  # files may have vectors of zeros

    def vectors_of(self, words: Sequence[str]) -> Float32[np.ndarray, "N D"]:
        """Return the vectors of words; of unknown ones the mean of their n-grams, or zeros."""
        words = list(words)
        ids = self.vocabulary.ids(words)
        vectors = self._vectors[ids]
        for n in np.flatnonzero(ids == self.vocabulary.unk_id).tolist():
            rows = self._subwords.rows(unicodedata.normalize("NFC", words[n]))
            vectors[n] = self._round(self._table[rows].mean(axis=0)) if rows else 0.0
        return vectors

    def vector(self, word: str) -> Float32[np.ndarray, " D"]:
        """Return the vector of a word; raise for one that has none."""
        [vector] = self.vectors_of([word])
        if not vector.any():
            hint = did_you_mean(word, self.words)
            raise ValueError(f"{word!r} is not among the {len(self.words):,} words of {self.source}{hint}")
        return vector

    def neighbours(self, word: str | Float32[np.ndarray, " D"], top: int = 10) -> list[Neighbour]:
        """Return the words whose vectors have the highest cosine with a word's, or with a given vector."""
        vector = np.asarray(self.vector(word) if isinstance(word, str) else word, np.float64)
        if vector.shape != (self.width,):
            raise ValueError(
                f"the vector has the shape {vector.shape}, expected ({self.width},) as of the vectors of {self.source}"
            )
        length = np.linalg.norm(vector)  # of large numbers, a float32 would be infinite
        if not 0 < length < np.inf:
            raise ValueError("the vector is zero, or holds NaN or infinity, so it is similar to no word")
        direction = (vector / length).astype(np.float32)
        return self._nearest(direction, check_whole("top", top, 1), [word] if isinstance(word, str) else [])

    def analogy(self, a: str, b: str, c: str, top: int = 1) -> list[Neighbour]:
        """Return the words nearest to b - a + c, with vectors of length 1: a is to b as c is to them."""
        first, second, third = (normalise(self.vector(word)) for word in (a, b, c))
        return self._nearest(second - first + third, check_whole("top", top, 1), [a, b, c])

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine of the vectors of two words."""
        return float(normalise(self.vector(first)) @ normalise(self.vector(second)))

    def score_pairs(self, file: str | Path) -> dict[str, float]:
        """Return Spearman's correlation with people's scores of word pairs, and the share of pairs that have vectors.

        Each line has two words and a number, with tabs or commas between; lines with `#` and a first line of names are
        left out. A column that is named SimLex999 has the numbers, otherwise the third one. A word without a vector is
        looked up in lower case.
        """
        pairs: list[tuple[str, str, float]] = []
        scores_at, first_line = 2, True
        for number, line in enumerate(read_text(Path(file)).splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.split("\t") if "\t" in line else next(csv.reader([line], skipinitialspace=True))
            cells = [cell.strip() for cell in cells]
            try:
                score = float(cells[scores_at])
                if not math.isfinite(score):
                    raise ValueError
                pairs.append((self._fold(cells[0]), self._fold(cells[1]), score))
            except (IndexError, ValueError):
                if not first_line or len(cells) < 3 or not all(cells[:3]):
                    raise ValueError(
                        f"{file}:{number}: {line[:60]!r}; expected two words and a number, with tabs or commas between"
                    ) from None
                scores_at = cells.index("SimLex999") if "SimLex999" in cells else scores_at
            first_line = False
        usable = [pair for pair in pairs if self.vectors_of(pair[:2]).any(axis=1).all()]
        if len(usable) < 2:
            raise ValueError(f"{file}: {len(usable)} of {len(pairs)} pairs have vectors, and a correlation needs two")
        cosines = np.array([self.similarity(first, second) for first, second, _ in usable])
        scores = np.array([score for *_, score in usable])
        correlation = float(spearman(scores, cosines))
        if math.isnan(correlation):
            same = "scores" if (scores == scores[0]).all() else "cosines"
            raise ValueError(
                f"{file}: the {same} of all {len(usable)} pairs that have vectors are equal, so there is no "
                "correlation: give pairs with different scores"
            )
        return {"spearman": correlation, "share": len(usable) / len(pairs)}

    def score_analogies(self, file: str | Path) -> dict[str, float]:
        """Return the share of right answers to analogies, and the share of them whose words have vectors.

        Each line has four words; lines that begin with `:` name a group, and are left out. A word without a vector is
        looked up in lower case.
        """
        lines = [
            list(map(self._fold, line.split()))
            for line in read_text(Path(file)).splitlines()
            if line.strip() and line[0] != ":"
        ]
        wrong = next((number for number, words in enumerate(lines, start=1) if len(words) != 4), None)
        if wrong is not None or not lines:
            raise ValueError(f"{file}: question {wrong or 1} has not four words, or there is none")
        usable = [words for words in lines if all(word in self for word in words)]
        if not usable:
            raise ValueError(f"{file}: none of {len(lines)} questions has vectors for its words; check the language")
        compose = functools.partial(unicodedata.normalize, "NFC")  # a file of vectors may have decomposed words
        right = sum([compose(near.word) for near in self.analogy(a, b, c)] == [d] for a, b, c, d in usable)
        return {"accuracy": right / len(usable), "share": len(usable) / len(lines)}

    def sentence_vectors(self, sentences: Sequence[str | Words]) -> Float32[np.ndarray, "B D"]:
        """Return the mean of the vectors of each sentence's words that have one; zeros if none has."""
        vectors = self.encode(sentences, progress=False).last
        counts = vectors.any(axis=-1).sum(axis=1, keepdims=True)
        return (vectors.sum(axis=1) / np.maximum(counts, 1)).astype(np.float32)

    def save_vectors(self, path: str | Path, format: VectorFormat | None = None) -> None:
        """Write the words and their vectors: `word2vec` (with a first line), `glove` (without) or `binary`.

        By default a file that ends in `.bin` is binary, and any other has word2vec's first line. Other programs, and
        `load`, read these files.
        """
        usual: VectorFormat = "binary" if Path(path).suffix.lower() == ".bin" else "word2vec"
        real = [n for n, word in enumerate(self.words, start=len(WORD_SPECIALS)) if self._vectors[n].any()]
        write_vectors(path, [self.vocabulary.words[n] for n in real], self._vectors[real], format or usual)

    def count_unknown(self, words: Sequence[str]) -> int:
        """Return how many of the words have no vector."""
        return int((~self.vectors_of(words).any(axis=1)).sum())

    def read_rows(self, sentences: Sequence[Words]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the sentences themselves; their vectors are looked up batch by batch."""
        return sentences, [slice(len(words)) for words in sentences]

    def compute_rows(self, rows: Sequence[Any], height: int, width: int) -> Any:
        """Return the vectors of the words of sentences."""
        vectors = np.zeros((height, width, self.config.hidden_size), np.float32)
        for n, words in enumerate(rows):
            vectors[n, : len(words)] = self.vectors_of(words)
        return (vectors,)

    def word_batch(self, sentences: Sequence[Sequence[str]], height: int, width: int) -> dict[str, np.ndarray]:
        """Return the rows of each word in the table, padded with -1, for a network that fine-tunes this encoder."""
        lists = [[self._rows_of(word) for word in words] for words in sentences]
        most = max((len(rows) for words in lists for rows in words), default=1)
        table_rows: Int32[np.ndarray, "B T G"] = np.full((height, width, 1 << (most - 1).bit_length()), -1, np.int32)
        for n, words in enumerate(lists):
            for place, rows in enumerate(words):
                table_rows[n, place, : len(rows)] = rows
        return {"static_rows": table_rows}

    def word_function(self) -> Callable[[Any, Mapping[str, Any], PRNGKeyArray | None], Array]:
        """Return the function of `Encoder.word_function`."""
        module = Static(self.config)

        def layers_of_words(params: Any, batch: Mapping[str, Any], key: PRNGKeyArray | None) -> Array:
            del key
            output: Any = module.apply({"params": params}, batch["static_rows"])
            return output.last[None].astype(jnp.float32)

        return layers_of_words

    def _fold(self, word: str) -> str:
        """Return a word composed (NFC), in lower case if only that has a vector."""
        word = unicodedata.normalize("NFC", word)
        return word.lower() if word not in self and word.lower() in self else word

    def _rows_of(self, word: str) -> list[int]:
        [number] = self.vocabulary.ids([word]).tolist()
        if number == self.vocabulary.unk_id:
            return self._subwords.rows(unicodedata.normalize("NFC", word))
        return [number, *self._subwords.rows(self.vocabulary.words[number])]

    def _round(self, vectors: np.ndarray) -> Float32[np.ndarray, "*N D"]:
        return np.asarray(vectors).astype(self.config.dtype).astype(np.float32)

    @functools.cached_property
    def _table(self) -> Float32[np.ndarray, "R D"]:
        return np.asarray(self.params["encoder"]["embeddings"]["word"], np.float32)

    @functools.cached_property
    def _vectors(self) -> Float32[np.ndarray, "V D"]:
        """The vectors of the vocabulary; the marks have zeros."""
        vectors = np.array(self._table[: self.config.vocab_size])
        if self.config.gram_rows:
            rows, ends = self._subwords.table(self.vocabulary.words)
            for at in range(0, len(vectors), CHUNK):
                part = ends[at : at + CHUNK + 1]
                sums = np.add.reduceat(self._table[rows[part[0] : part[-1]]], part[:-1] - part[0], axis=0)
                vectors[at : at + CHUNK] = sums / np.diff(part)[:, None]
        vectors[: len(WORD_SPECIALS)] = 0
        return self._round(vectors)

    @functools.cached_property
    def _directions(self) -> Float32[np.ndarray, "V D"]:
        return normalise(self._vectors)

    def _nearest(self, vector: Float32[np.ndarray, " D"], top: int, without: Sequence[str]) -> list[Neighbour]:
        cosines = self._directions @ normalise(vector)
        left_out = [0, 1, 2, *(number for number in self.vocabulary.ids(without).tolist() if number > 2)]
        cosines[left_out] = -np.inf
        cosines[~self._directions.any(axis=1)] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:top]
        return [Neighbour(self.vocabulary.words[n], float(cosines[n])) for n in best if cosines[n] > -np.inf]


def drop_untrained_words(
    config: StaticConfig, params: Mapping[str, Any], vocabulary: WordVocabulary
) -> tuple[StaticConfig, Mapping[str, Any], WordVocabulary]:
    """Return a trained model without the words that no step has read, such as those below `min_count`.

    Their vectors are still random, as `find_untrained` sees; vectors that a run began with from a file are not. Runs of
    earlier versions drew all digits, also for the three marks, which are never trained; there, only the rows of a table
    that begins with zeros tell, of neighbours or of GloVe's biases, which negatives change, too. A model without any
    training stays as it is.
    """
    trained = ~find_untrained(np.asarray(params["encoder"]["embeddings"]["word"][: config.vocab_size], np.float32))
    if trained.all():
        zeros_at_start = np.asarray(params["context"].get("word_bias", params["context"]["embedding"]))
        trained = np.asarray(zeros_at_start.reshape(len(zeros_at_start), -1).any(axis=1))
    trained[: len(WORD_SPECIALS)] = True
    if trained.all() or not trained[len(WORD_SPECIALS) :].any():
        return config, params, vocabulary
    numbers, untrained = np.flatnonzero(trained), np.flatnonzero(~trained)
    params = jax.tree.map(lambda rows: np.delete(np.asarray(rows), untrained, axis=0), dict(params))
    counts = None if vocabulary.counts is None else vocabulary.counts[numbers]
    words = WordVocabulary([vocabulary.words[n] for n in numbers], counts, rule=vocabulary.rule)
    return dataclasses.replace(config, vocab_size=len(numbers)), params, words


def normalise(vectors: Float32[np.ndarray, "*N D"]) -> Float32[np.ndarray, "*N D"]:
    """Return vectors divided by their lengths; zeros stay.

    >>> normalise(np.array([3.0, 4.0], np.float32)).round(1).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
