"""The result of a CoVe for a list of sentences."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.encoders.word_encoder import EncodedWords


@dataclass(frozen=True, eq=False, repr=False)
class CoveEncoded(EncodedWords):
    """Vectors of B sentences of up to T words: `layers` are the word vectors and the output of each LSTM layer.

    The layers are a tuple, because their widths differ. All arrays are zero where `mask` is 0. `words` is None if
    vectors were given.

    `encoding[2:5]` and `encoding[3]` are `CoveEncoded` too, padded to their longest sentence; iteration yields single
    sentences.
    """

    layers: tuple[Float32[np.ndarray, "B T _"], ...]
    mask: Int32[np.ndarray, "B T"]
    words: list[list[str]] | None = None

    @property
    def vectors(self) -> Float32[np.ndarray, "B T D"]:
        """The word vectors, such as GloVe's."""
        return self.layers[0]

    @property
    def beside(self) -> Float32[np.ndarray, "B T W"]:
        """The word vectors and the last layer side by side, as the paper's task networks read them."""
        return np.concatenate([self.vectors, self.last], axis=-1)

    def __repr__(self) -> str:
        return show_shapes("CoveEncoded", len(self), vectors=self.vectors, last=self.last)
