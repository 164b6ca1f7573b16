"""What an encoder gives back for a list of texts."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float32, Int

from bert_elmo_jax.text import Encoding


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of B texts of up to T pieces, and the way back to the characters and words they came from.

    Everything is zero where `mask` is 0, so that neither batching nor padding shows. `layers` are those asked for, in
    that order (0 is the embeddings). `texts` hold what the tokenizer said of each text: `tokens`, `offsets`,
    `word_ids`, `types`, `ids`.
    """

    last: Float32[np.ndarray, "B T D"]
    mask: Int[np.ndarray, "B T"]
    texts: tuple[Encoding, ...]
    word_counts: tuple[tuple[int, int], ...]  # of the first and of the second text, with or without pieces
    pooled: Float32[np.ndarray, "B D"] | None = None
    layers: Float32[np.ndarray, "L B T D"] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> "Encoded":
        """Some of the texts, padded to the longest of them."""
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

    @property
    def tokens(self) -> list[list[str]]:
        """The pieces of each text, special ones included."""
        return [list(text.tokens) for text in self.texts]

    @property
    def offsets(self) -> list[Int[np.ndarray, "pieces 2"]]:
        """Where each piece stands in its text: characters (start, end); (0, 0) for special pieces."""
        return [text.offsets for text in self.texts]

    @property
    def word_ids(self) -> list[Int[np.ndarray, "pieces"]]:
        """The word each piece is of, counted in its own text; -1 for special pieces."""
        return [text.word_ids for text in self.texts]

    def words(
        self, how: Literal["mean", "first", "last"] = "mean", values: Float[np.ndarray, "B T D"] | None = None
    ) -> list[Float32[np.ndarray, "words D"]]:
        """One vector a word, from its pieces; of a pair the second text's words follow the first's.

        `values` are other vectors than the last layer's, such as `encoding.layers[8]`. A word without any piece (a
        control character, or cut off) has zeros.
        """
        if how not in ("mean", "first", "last"):
            raise ValueError(f"words({how!r}) is not known; use 'mean', 'first' or 'last'")
        values = self.last if values is None else values
        return [
            pool_words(vectors, text, counts, how)
            for vectors, text, counts in zip(values, self.texts, self.word_counts)
        ]


def pool_words(
    vectors: Float[np.ndarray, "T D"], text: Encoding, counts: tuple[int, int], how: str
) -> Float32[np.ndarray, "words D"]:
    """The vectors of a text's words."""
    real = np.flatnonzero(text.word_ids >= 0)
    word = text.word_ids[real] + counts[0] * (text.types[real] == 1)
    out = np.zeros((sum(counts), vectors.shape[1]), np.float32)
    if how == "mean":
        np.add.at(out, word, vectors[real])
        out /= np.maximum(np.bincount(word, minlength=len(out)), 1)[:, None]
    elif how == "first":
        out[word[::-1]] = vectors[real[::-1]]
    else:
        out[word] = vectors[real]
    return out
