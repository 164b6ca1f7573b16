"""The layers of any encoder over words that are split already: ELMo, BERT and static vectors, all alike."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.encoders.arguments import check_layers

Words = Sequence[str]
Pieces = Literal["mean", "first", "last"]  # what stands for a word of several pieces
STATIC = "static"  # the name of the only layer that static vectors have


class StaticVectors:
    """One vector a word, whatever stands around it, such as GloVe's; zeros for words without one.

    A word that is not there as it is written is looked up in lower case.

    >>> vectors = StaticVectors({"bank": np.ones(2, np.float32)}, "glove")
    >>> vectors.of(["Bank", "강둑"]).tolist(), vectors.width
    ([[1.0, 1.0], [0.0, 0.0]], 2)
    """

    def __init__(self, table: Mapping[str, Any], source: str = "vectors"):
        if not table:
            raise ValueError(f"{source} has no vector for any word that is asked for; check its language and spelling")
        self.source = source
        self.table = {word: np.asarray(vector, np.float32) for word, vector in table.items()}
        widths = {vector.shape for vector in self.table.values()}
        if len(widths) > 1 or len(next(iter(widths))) != 1:
            raise ValueError(f"{source} has vectors of the shapes {sorted(widths)[:3]}; expected one width for all")
        self.width = len(next(iter(self.table.values())))

    @property
    def fingerprint(self) -> str:
        """What names these vectors."""
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
        """The vectors of words."""
        zeros = np.zeros(self.width, np.float32)
        found = [self.table.get(word, self.table.get(word.lower(), zeros)) for word in words]
        return np.stack(found) if found else np.zeros((0, self.width), np.float32)


if TYPE_CHECKING:

    class Encoder(Protocol):
        """What `load` returns of an encoder of any family, seen by whoever asks for the layers of words."""

        source: str
        config: Any
        params: dict[str, Any]

        @property
        def num_layers(self) -> int: ...  # noqa: D102

        @property
        def width(self) -> int: ...  # noqa: D102

        @property
        def fingerprint(self) -> str: ...  # noqa: D102

        @property
        def reads(self) -> Any: ...  # noqa: D102

        def check_words(self) -> None: ...  # noqa: D102

        def word_layers(  # noqa: D102
            self, sentences: Iterable[Words], layers: Sequence[int], *, pieces: Pieces = "mean", batch_size: int = 32
        ) -> Iterator[Float32[np.ndarray, "L words D"]]: ...

        def word_batch(self, sentences: Sequence[Words], height: int, width: int) -> dict[str, np.ndarray]: ...  # noqa: D102

        def word_function(self) -> Any: ...  # noqa: D102
else:
    Encoder = Any  # a check of its properties at run time would compute fingerprints

Source = Any  # an Encoder or StaticVectors


def layers_of(source: Source, wanted: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the numbers of the layers asked for, all of them by default; static vectors have layer 0 only.

    >>> layers_of(StaticVectors({"bank": np.ones(2, np.float32)})), layers_of(StaticVectors({"a": np.ones(2)}), [1, 2])
    ((0,), (0,))
    """
    if isinstance(source, StaticVectors):
        return (0,)
    if not hasattr(source, "word_layers"):
        raise TypeError(f"a {type(source).__name__} has no layers to look at: give an encoder, as `load` returns it")
    return check_layers("all" if wanted is None else wanted, source.num_layers) or ()


def word_layers(
    source: Source,
    sentences: Iterable[Words],
    layers: Sequence[int] | None = None,
    *,
    pieces: Pieces = "mean",
    batch_size: int = 32,
) -> Iterator[Float32[np.ndarray, "L words D"]]:
    """Yield the layers of each sentence's words, one sentence after the other; only a few are in memory.

    With pieces, a word is the mean of its pieces by default: number, tense and case are often in the last piece (in
    Korean always), which the first would have to know from its context. Taggers use `pieces="first"`.

    >>> from bert_elmo_jax import load
    >>> for model in ("tests/goldens/bert_tiny", "tests/goldens/elmo_tiny"):
    ...     print([layers.shape for layers in word_layers(load(model), [["강가의", "은행"], ["배"]])])
    [(4, 2, 64), (4, 1, 64)]
    [(3, 2, 24), (3, 1, 24)]
    """
    numbers = list(layers_of(source, layers))
    return source.word_layers(sentences, numbers, pieces=pieces, batch_size=batch_size)
