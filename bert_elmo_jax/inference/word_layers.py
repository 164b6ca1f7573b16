"""The layers of words, for encoders of all families and for static vectors."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import normalize

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.encoders.arguments import check_layers

Words = Sequence[str]
Pieces = Literal["mean", "first", "last"]  # the vector of a word with several pieces


class StaticVectors:
    """One vector per word in every context, such as GloVe's, found also in lower case; zeros for unknown words.

    Words are compared composed (NFC).
    """

    def __init__(self, table: Mapping[str, Any], source: str = "vectors"):
        if not table:
            raise ValueError(f"{source} has no vector for any of the words; check its language and spelling")
        self.source = source
        self.table = {normalize("NFC", word): np.asarray(vector, np.float32) for word, vector in table.items()}
        widths = {vector.shape for vector in self.table.values()}
        if len(widths) > 1 or len(next(iter(widths))) != 1:
            raise ValueError(f"{source} has vectors of the shapes {sorted(widths)[:3]}; expected one width for all")
        self.width = len(next(iter(self.table.values())))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of words and vectors."""
        digest = hashlib.sha256()
        for word in sorted(self.table):
            digest.update(word.encode("utf-8", "surrogatepass") + b"\0" + self.table[word].tobytes())
        return digest.hexdigest()[:16]

    def word_layers(
        self, sentences: Iterable[Words], layers: Sequence[int], *, pieces: Pieces = "mean", batch_size: int = 32
    ) -> Iterator[Float32[np.ndarray, "1 words D"]]:
        """Yield the only layer of each sentence's words."""
        return (self.of(list(words))[None] for words in sentences)

    def of(self, words: Words) -> Float32[np.ndarray, "words D"]:
        """Return the vectors of words."""
        zeros = np.zeros(self.width, np.float32)
        composed = [normalize("NFC", word) for word in words]
        vectors = [self.table.get(word, self.table.get(word.lower(), zeros)) for word in composed]
        return np.stack(vectors) if vectors else np.zeros((0, self.width), np.float32)


if TYPE_CHECKING:
    from bert_elmo_jax.encoders.encoder import Encoder
else:
    Encoder = Any  # another package's encoder needs the same methods, not the same class

Source = Any  # an Encoder or StaticVectors


def choose_layers(source: Source, layers: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the numbers of the requested layers, by default all; static vectors have only layer 0."""
    if isinstance(source, StaticVectors):
        return (0,)
    if not hasattr(source, "word_layers"):
        raise TypeError(f"a {type(source).__name__} has no layers to look at: give an encoder, as `load` returns it")
    return check_layers("all" if layers is None else layers, source.num_layers) or ()


def word_layers(
    source: Source,
    sentences: Iterable[Words],
    layers: Sequence[int] | None = None,
    *,
    pieces: Pieces = "mean",
    batch_size: int = 32,
) -> Iterator[Float32[np.ndarray, "L words D"]]:
    """Yield the layers of each sentence's words; only a few sentences are in memory.

    By default, a word is the mean of its pieces, because the last piece often has number, tense and case (in Korean
    always). Taggers use `pieces="first"`.

    >>> from bert_elmo_jax import load
    >>> for model in ("tests/goldens/bert_tiny", "tests/goldens/elmo_tiny"):
    ...     print([layers.shape for layers in word_layers(load(model), [["강가의", "은행"], ["배"]])])
    [(4, 2, 64), (4, 1, 64)]
    [(3, 2, 24), (3, 1, 24)]
    """
    numbers = list(choose_layers(source, layers))
    return source.word_layers(sentences, numbers, pieces=pieces, batch_size=batch_size)
