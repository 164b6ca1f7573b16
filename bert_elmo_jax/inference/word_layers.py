"""The layers of any encoder over words that are split already: ELMo, BERT and static vectors, all alike."""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.encoders.arguments import check_layers
from bert_elmo_jax.families.bert.encoder import BertEncoder
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder

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

    def of(self, words: Words) -> Float32[np.ndarray, "words D"]:
        """The vectors of words."""
        zeros = np.zeros(self.width, np.float32)
        found = [self.table.get(word, self.table.get(word.lower(), zeros)) for word in words]
        return np.stack(found) if found else np.zeros((0, self.width), np.float32)


Source = BertEncoder | ElmoEncoder | StaticVectors


def layers_of(source: Source, wanted: Sequence[int] | None = None) -> tuple[int, ...]:
    """The numbers of the layers that are asked for, all of them unless said; static vectors have one, 0.

    >>> layers_of(StaticVectors({"bank": np.ones(2, np.float32)})), layers_of(StaticVectors({"a": np.ones(2)}), [1, 2])
    ((0,), (0,))
    """
    if isinstance(source, StaticVectors):
        return (0,)
    if not isinstance(source, BertEncoder | ElmoEncoder):
        raise TypeError(
            f"a {type(source).__name__} has no layers to look at: give what load gives of a BERT or an ELMo"
        )
    return check_layers("all" if wanted is None else wanted, source.config.num_layers) or ()


def word_layers(
    source: Source,
    sentences: Iterable[Words],
    layers: Sequence[int] | None = None,
    *,
    pieces: Pieces = "mean",
    batch_size: int = 32,
) -> Iterator[Float32[np.ndarray, "L words D"]]:
    """The layers of each sentence's words, one sentence after the other; of many only a few are in memory.

    A word of a BERT is the mean of its pieces: what tells number, tense or case often stands in the last one, in
    Korean always, and the first alone would have to know it from its context. With `pieces="first"` it is the first,
    as taggers have it. Longer sentences than the model takes are read in overlapping windows; a word of which nothing
    is left (a control character) has zeros.

    >>> from bert_elmo_jax import load
    >>> for model in ("tests/goldens/bert_tiny", "tests/goldens/elmo_tiny"):
    ...     print([layers.shape for layers in word_layers(load(model), [["강가의", "은행"], ["배"]])])
    [(4, 2, 64), (4, 1, 64)]
    [(3, 2, 24), (3, 1, 24)]
    """
    numbers = list(layers_of(source, layers))
    lists = (list(words) for words in sentences)
    if isinstance(source, StaticVectors):
        yield from (source.of(words)[None] for words in lists)
    elif isinstance(source, BertEncoder):
        yield from _of_bert(source, lists, numbers, pieces, batch_size)
    else:
        for sentence in source.encode_batches(lists, batch_size=batch_size):
            yield from (sentence.layers[numbers, n, :size] for n, size in enumerate(sentence.mask.sum(axis=1)))


def _of_bert(
    bert: BertEncoder, sentences: Iterator[list[str]], numbers: list[int], pieces: Pieces, batch_size: int
) -> Iterator[Float32[np.ndarray, "L words D"]]:
    """A text without any piece is not given to the model, which would refuse it."""
    nothing: deque[int | None] = (
        deque()
    )  # of each sentence that was read and not given out: its words, if without piece

    def readable() -> Iterator[list[str]]:
        for words in sentences:
            empty = not bert.tokenizer.encode_words(words, specials=False).ids.size
            nothing.append(len(words) if empty else None)
            if not empty:
                yield words

    def zeros() -> Iterator[Float32[np.ndarray, "L words D"]]:
        while nothing and (words := nothing[0]) is not None:
            nothing.popleft()
            yield np.zeros((len(numbers), words, bert.config.hidden_size), np.float32)

    for batch in bert.encode_batches(readable(), batch_size=batch_size, layers=numbers, overflow="windows"):
        assert batch.layers is not None
        for layers in zip(*(batch.words(pieces, values) for values in batch.layers)):
            yield from zeros()
            nothing.popleft()
            yield np.stack(layers)
    yield from zeros()
