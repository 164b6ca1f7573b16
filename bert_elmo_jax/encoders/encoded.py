"""The result of an encoder for a list of texts."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32, Int

from bert_elmo_jax.text import Encoding


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Vectors of B texts of up to T pieces, with the characters and words of each piece.

    All arrays are zero where `mask` is 0. `layers` are in the order of the request (0 is the embeddings). A text in
    windows has the `pooled` vector of its first window. `texts` are the tokenizer's results: `tokens`, `offsets`,
    `word_ids`, `types`, `ids`.

    `encoding[2:5]` and `encoding[3]` are `Encoded` too, padded to their longest text; iteration yields single texts.
    """

    last: Float32[np.ndarray, "B T D"]
    mask: Int[np.ndarray, "B T"]
    texts: tuple[Encoding, ...]
    word_counts: tuple[tuple[int, int], ...]  # of the first and of the second text, with or without pieces
    pooled: Float32[np.ndarray, "B D"] | None = None
    layers: Float32[np.ndarray, "L B T D"] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return show_shapes("Encoded", len(self), last=self.last, layers=self.layers, pooled=self.pooled)

    def __getitem__(self, part: slice | int) -> "Encoded":
        """Return some of the texts, or one, padded to their longest; the arrays are views."""
        part = to_slice(part, len(self))
        texts = self.texts[part]
        width = max(map(len, texts), default=0)
        return Encoded(
            self.last[part, :width],
            self.mask[part, :width],
            texts,
            self.word_counts[part],
            None if self.pooled is None else self.pooled[part],
            None if self.layers is None else self.layers[:, part, :width],
        )

    def __iter__(self) -> Iterator["Encoded"]:
        return (self[number] for number in range(len(self)))

    @property
    def tokens(self) -> list[list[str]]:
        """The pieces of each text, special ones included."""
        return [list(text.tokens) for text in self.texts]

    @property
    def offsets(self) -> list[Int[np.ndarray, "pieces 2"]]:
        """The characters (start, end) of each piece in its text; (0, 0) for special pieces."""
        return [text.offsets for text in self.texts]

    @property
    def word_ids(self) -> list[Int[np.ndarray, "pieces"]]:
        """The number of the word of each piece, counted in its own text; -1 for special pieces."""
        return [text.word_ids for text in self.texts]

    def words(
        self, how: Literal["mean", "first", "last"] = "mean", values: Float[np.ndarray, "B T D"] | None = None
    ) -> list[Float32[np.ndarray, "words D"]]:
        """Return one vector per word, from its pieces; in a pair, the second text's words come last.

        `values` replace the last layer, for example `encoding.layers[8]`. Every word has a row: zeros for words cut off
        by `overflow="truncate"`. The word at the cut is made of its remaining pieces.
        """
        if how not in ("mean", "first", "last"):
            raise ValueError(f"words({how!r}) is not known; use 'mean', 'first' or 'last'")
        vectors: Any = self.last if values is None else np.asarray(values)
        if vectors.ndim != 3 or vectors.shape[:2] != self.last.shape[:2]:
            raise ValueError(
                f"values have the shape {vectors.shape}; expected {self.last.shape}, one vector per piece of these "
                "texts, such as one of the layers: encoding.layers[0]"
            )
        return [
            pool_words(of_text, text, counts, how)
            for of_text, text, counts in zip(vectors, self.texts, self.word_counts)
        ]


def show_shapes(name: str, texts: int, **arrays: Any) -> str:
    """Return a short text with the shapes of arrays, for a `repr`."""
    shown = [f"{key} {list(array.shape)}" for key, array in arrays.items() if array is not None]
    return f"{name}({', '.join([f'{texts} texts', *shown])})"


def to_slice(part: slice | int, size: int) -> slice:
    """Return the slice of `size` texts that an index or a slice selects."""
    if isinstance(part, slice):
        return part
    try:
        number = range(size)[operator.index(part)]
    except TypeError:
        raise TypeError(
            f"encoding[{part!r}] is not known; use the number of a text, a slice, or an array: encoding.last"
        ) from None
    except IndexError:
        raise IndexError(f"there is no text {part} among {size}, numbered from 0") from None
    return slice(number, number + 1)


def pool_words(
    vectors: Float[np.ndarray, "T D"], text: Encoding, counts: tuple[int, int], how: str
) -> Float32[np.ndarray, "words D"]:
    """Return the vectors of a text's words."""
    real = np.flatnonzero(text.word_ids >= 0)
    word = text.word_ids[real] + counts[0] * (text.texts[real] == 1)
    out = np.zeros((sum(counts), vectors.shape[1]), np.float32)
    if how == "mean":
        np.add.at(out, word, vectors[real])
        out /= np.maximum(np.bincount(word, minlength=len(out)), 1)[:, None]
    elif how == "first":
        out[word[::-1]] = vectors[real[::-1]]
    else:
        out[word] = vectors[real]
    return out


def blank(
    texts: Sequence[Encoding], word_counts: Sequence[tuple[int, int]], width: int, *, layers: int | None, pooled: bool
) -> Encoded:
    """Return zeros for the vectors of texts, of `width` numbers each; `layers` is the number of layers, if any."""
    shape = (len(texts), max(map(len, texts), default=0))
    mask = np.arange(shape[1]) < np.array([len(text) for text in texts], np.int64)[:, None]
    return Encoded(
        np.zeros((*shape, width), np.float32),
        mask.astype(np.int32),
        tuple(texts),
        tuple(word_counts),
        np.zeros((shape[0], width), np.float32) if pooled else None,
        None if layers is None else np.zeros((layers, *shape, width), np.float32),
    )


def join(parts: Sequence[Encoded]) -> Encoded:
    """Return texts that were encoded one by one as one object."""
    first = parts[0]
    joined = blank(
        [text for part in parts for text in part.texts],
        [count for part in parts for count in part.word_counts],
        first.last.shape[-1],
        layers=None if first.layers is None else len(first.layers),
        pooled=first.pooled is not None,
    )
    for target, source in zip(joined, (one for part in parts for one in part), strict=True):
        for name in ("last", "pooled", "layers"):
            if getattr(source, name) is not None:
                getattr(target, name)[...] = getattr(source, name)
    return joined
