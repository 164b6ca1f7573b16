"""The result of a CoVe for a list of sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.encoded import show_shapes, to_slice


@dataclass(frozen=True, eq=False, repr=False)
class CoveEncoded:
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
    def last(self) -> Float32[np.ndarray, "B T S"]:
        """The last layer."""
        return self.layers[-1]

    @property
    def beside(self) -> Float32[np.ndarray, "B T W"]:
        """The word vectors and the last layer side by side, as the paper's task networks read them."""
        return np.concatenate([self.vectors, self.last], axis=-1)

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        return show_shapes("CoveEncoded", len(self), vectors=self.vectors, last=self.last)

    def __getitem__(self, part: slice | int) -> "CoveEncoded":
        """Return some of the sentences, or one, padded to their longest; the arrays are views."""
        part = to_slice(part, len(self))
        mask = self.mask[part]
        width = int(mask.sum(axis=1).max(initial=0))
        layers = tuple(layer[part, :width] for layer in self.layers)
        return CoveEncoded(layers, mask[:, :width], None if self.words is None else self.words[part])

    def __iter__(self) -> Iterator["CoveEncoded"]:
        return (self[number] for number in range(len(self)))


def blank(sentences: Sequence[list[str]], widths: Sequence[int]) -> CoveEncoded:
    """Return zeros for the layers of sentences; each layer has its width in `widths`."""
    lengths = np.array([len(words) for words in sentences])
    mask = np.arange(lengths.max()) < lengths[:, None]
    layers = tuple(np.zeros((*mask.shape, width), np.float32) for width in widths)
    return CoveEncoded(layers, mask.astype(np.int32), list(sentences))


def join(parts: Sequence[CoveEncoded]) -> CoveEncoded:
    """Return sentences that were encoded one by one as one object."""
    whole = blank([words for part in parts for words in part.words or ()], [x.shape[-1] for x in parts[0].layers])
    for n, part in enumerate(parts):
        for target, source in zip(whole.layers, part.layers):
            target[n, : source.shape[1]] = source[0]
    return whole
