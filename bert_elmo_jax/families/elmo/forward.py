"""The compiled parts of `ElmoEncoder`: the token layer of distinct words, and padded rows through the model."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.encoders.sentences import check_words
from bert_elmo_jax.families.elmo.batch import pad, pieces
from bert_elmo_jax.families.elmo.model import Elmo, ElmoConfig, State, Token
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.progress_bars import progress_bar
from bert_elmo_jax.text.characters import boundary_characters, character_table
from bert_elmo_jax.text.words import WordVocabulary

MANY = 1 << 14  # words whose characters are in memory together; more show a progress bar


class TokenTable:
    """Token vectors of words, computed or cached; a table begins with the vectors of the marks of begin and end."""

    def __init__(self, config: ElmoConfig, params: Mapping[str, Any]):
        self.config, self.params = config, params
        self._known: dict[str, int] = {}
        self._vectors = np.zeros((0, config.width), np.float32)

    def cache(self, words: Sequence[str], progress: bool | None = None) -> None:
        """Compute the vectors of distinct words, and replace the cache."""
        vectors = np.empty((len(words), self.config.width), np.float32)
        self._compute_words(words, vectors, progress)
        self._known, self._vectors = {word: n for n, word in enumerate(words)}, vectors

    def of_words(self, words: Sequence[str], progress: bool | None = None) -> Float32[np.ndarray, "rows P"]:
        """Return the table of distinct words; words outside the cache are computed."""
        places = np.fromiter((self._known.get(word, -1) for word in words), np.int64, len(words))
        cached, new = places >= 0, np.flatnonzero(places < 0)
        table = np.empty((len(words) + 2, self.config.width), np.float32)
        table[:2] = self._marks
        table[2:][cached] = self._vectors[places[cached]]
        vectors = np.empty((len(new), self.config.width), np.float32)
        self._compute_words(list(itertools.compress(words, ~cached)), vectors, progress)
        table[2 + new] = vectors
        return table

    def of_characters(self, characters: Int[np.ndarray, "N C"]) -> Float32[np.ndarray, "rows P"]:
        """Return the table of words given by their characters."""
        table = np.empty((len(characters) + 2, self.config.width), np.float32)
        table[:2] = self._marks
        self._compute(characters, table[2:])
        return table

    @functools.cached_property
    def _marks(self) -> Float32[np.ndarray, "2 P"]:
        marks = boundary_characters(self.config.max_characters)
        return self._compute(marks, np.empty((2, self.config.width), np.float32))

    def _compute_words(self, words: Sequence[str], vectors: Float32[np.ndarray, "N P"], progress: bool | None) -> None:
        """Write the vectors of words into `vectors`, `MANY` at a time."""
        hide = len(words) < MANY if progress is None else not progress
        with progress_bar(len(words), "words", "words", shown=not hide, delay=1) as bar:
            for at in range(0, len(words), MANY):
                characters = character_table(words[at : at + MANY], self.config.max_characters)
                self._compute(characters, vectors[at : at + MANY], bar.update)

    def _compute(
        self,
        characters: Int[np.ndarray, "N C"],
        vectors: Float32[np.ndarray, "N P"],
        report: Callable[[int], object] = lambda done: None,
    ) -> Float32[np.ndarray, "N P"]:
        """Write the vectors of words into `vectors`."""
        for which, piece in pieces(characters):
            vectors[which] = np.asarray(token_vectors(self.config, self.params, piece), np.float32)[: len(which)]
            report(len(which))
        return vectors


# Compiled for each configuration, and for a few numbers and lengths of words.
@functools.partial(jax.jit, static_argnames="config")
def token_vectors(
    config: ElmoConfig, params: Mapping[str, Any], characters: Int[AnyArray, "U C"]
) -> Float[Array, "U P"]:
    """Return the token layer's vectors of words."""
    table: Any = Token(config).apply({"params": params["encoder"]["token"]}, characters[None], None)
    return table[0]


def check_cache(vocabulary: Any) -> list[str]:
    """Return the distinct words of a list or a vocabulary."""
    if isinstance(vocabulary, WordVocabulary):
        vocabulary = vocabulary.words
    if isinstance(vocabulary, str | bytes | Mapping) or not isinstance(vocabulary, Iterable):
        raise TypeError(f"cache takes a list of words or a WordVocabulary; it was given {shorten(vocabulary)}")
    words = list(vocabulary)
    if not words:
        raise ValueError("cache was given no words: the list is empty")
    check_words(words, lambda problem: ValueError(f"the list of words to cache {problem}"))
    return list(dict.fromkeys(words))


def compute(
    config: ElmoConfig,
    params: Mapping[str, Any],
    rows: Sequence[Int[np.ndarray, "_"]],
    table: Float32[np.ndarray, "N P"] | None,
    state: State,
    batch_size: int,
    warmup: int = 0,
) -> tuple[Float32[np.ndarray, "L B T D"], State]:
    """Return all layers of rows (places in a table of token vectors, or ids), padded, and the state after each row."""
    # The product of a single row adds its terms in another order, and large weights make the last bit visible. A second
    # row avoids this: it is nearly free in a small model, but half of the time in a large one.
    small = 4 * config.cell_size * config.projection_size <= 1 << 20
    words, lengths = pad(rows, batch_size, least=2 if small else 1)
    tokens = None
    if table is not None:
        used, places = np.unique(words, return_inverse=True)
        words = places.reshape(words.shape).astype(np.int32)
        # Two sizes of the table for each shape of batch: few to compile, and less to multiply.
        size = words.size // 2 if len(used) <= words.size // 2 else words.size
        tokens = np.zeros((1, size, table.shape[1]), np.float32)
        tokens[0, : len(used)] = table[used]
    extra = [(0, 0), (0, 0), (0, len(words) - len(rows)), (0, 0)]
    state = jax.tree.map(lambda part: np.pad(part, extra), state)
    for _ in range(warmup):
        _, state = read(config, params, words, lengths, tokens, state, layers=False)
    layers, state = jax.device_get(read(config, params, words, lengths, tokens, state, layers=True))
    return np.asarray(layers, np.float32), jax.tree.map(lambda part: part[:, :, : len(rows)], state)


# Compiled for each configuration and shape of batch, with layers, and for warm-up without.
@functools.partial(jax.jit, static_argnames=("config", "layers"))
def read(
    config: ElmoConfig,
    params: Mapping[str, Any],
    words: Int[AnyArray, "B T"],
    lengths: Int[AnyArray, " B"],
    tokens: Float[AnyArray, "N U P"] | None,
    state: State,
    *,
    layers: bool,
) -> tuple[Float[Array, "L B T D"] | None, State]:
    """Return the layers (None without `layers`) and the state."""
    output: Any = Elmo(config).apply({"params": params["encoder"]}, words, lengths, tokens=tokens, state=state)
    return output.layers if layers else None, output.state
