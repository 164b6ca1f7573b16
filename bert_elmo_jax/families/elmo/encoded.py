"""The result of an ELMo for a list of sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.encoded import show_shapes, to_slice
from bert_elmo_jax.families.elmo.model import State


@dataclass(frozen=True, eq=False, repr=False)
class ElmoEncoded:
    """Vectors of B sentences of up to T words: layer 0 is the token vector twice, the others forward and backward.

    All arrays are zero where `mask` is 0. `words` is None if ids were given. `state` is the state after each sentence
    if a state was given.

    `encoding[2:5]` and `encoding[3]` are `ElmoEncoded` too, padded to their longest sentence; iteration yields single
    sentences.
    """

    layers: Float32[np.ndarray, "L B T D"]
    mask: Int32[np.ndarray, "B T"]
    words: list[list[str]] | None = None
    state: State | None = None

    @property
    def last(self) -> Float32[np.ndarray, "B T D"]:
        """The last layer."""
        return self.layers[-1]

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        return show_shapes("ElmoEncoded", len(self), layers=self.layers)

    def __getitem__(self, part: slice | int) -> "ElmoEncoded":
        """Return some of the sentences, or one, padded to their longest; the arrays are views."""
        part = to_slice(part, len(self))
        mask = self.mask[part]
        width = int(mask.sum(axis=1).max(initial=0))
        return ElmoEncoded(
            self.layers[:, part, :width],
            mask[:, :width],
            None if self.words is None else self.words[part],
            None if self.state is None else jax.tree.map(lambda x: x[:, :, part], self.state),
        )

    def __iter__(self) -> Iterator["ElmoEncoded"]:
        return (self[number] for number in range(len(self)))


def blank(sentences: Sequence[list[str]], layers: int, width: int) -> ElmoEncoded:
    """Return zeros for the vectors of sentences."""
    lengths = np.array([len(words) for words in sentences])
    mask = np.arange(lengths.max()) < lengths[:, None]
    return ElmoEncoded(np.zeros((layers, *mask.shape, width), np.float32), mask.astype(np.int32), list(sentences))


def join(parts: Sequence[ElmoEncoded]) -> ElmoEncoded:
    """Return sentences that were encoded one by one as one object."""
    layers, *_, width = parts[0].layers.shape
    whole = blank([words for part in parts for words in part.words or ()], layers, width)
    for n, part in enumerate(parts):
        whole.layers[:, n, : part.layers.shape[2]] = part.layers[:, 0]
    return whole
