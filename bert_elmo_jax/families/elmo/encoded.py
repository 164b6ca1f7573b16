"""The result of an ELMo for a list of sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.encoders.word_encoder import EncodedWords
from bert_elmo_jax.families.elmo.model import State


@dataclass(frozen=True, eq=False, repr=False)
class ElmoEncoded(EncodedWords):
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

    def __repr__(self) -> str:
        return show_shapes("ElmoEncoded", len(self), layers=self.layers)

    @staticmethod
    def zeros(shape: tuple[int, ...], widths: Sequence[int]) -> Float32[np.ndarray, "L B T D"]:
        """Return zeros for all layers, which have one width."""
        return np.zeros((len(widths), *shape, widths[0]), np.float32)

    def cut_layers(self, part: slice, width: int) -> Float32[np.ndarray, "L B T D"]:
        """Return the layers of some sentences, up to a width."""
        return self.layers[:, part, :width]

    def cut_outputs(self, part: slice, width: int) -> dict[str, Any]:
        """Return the states of some sentences."""
        return {"state": None if self.state is None else jax.tree.map(lambda x: x[:, :, part], self.state)}
