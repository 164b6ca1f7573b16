"""The result of an AWD-LSTM for a list of sentences, or for rows of ids."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.word_encoder import EncodedWords
from bert_elmo_jax.families.awd_lstm.model import State


@dataclass(frozen=True, eq=False, repr=False)
class AwdLstmEncoded(EncodedWords):
    """Vectors of B sentences of up to T words: `layers` are the embeddings and the output of each LSTM layer.

    The layers are a tuple, because their widths differ. All arrays are zero where `mask` is 0. `words` is None if ids
    were given. `logits` of the word after each (before each, in a backward model), and `state` after the last, are the
    results of `forward`; `logits` is None if the weights have no head that predicts words.

    `encoding[2:5]` and `encoding[3]` are `AwdLstmEncoded` too, padded to their longest sentence; iteration yields
    single sentences.
    """

    layers: tuple[Float32[np.ndarray, "B T _"], ...]
    mask: Int32[np.ndarray, "B T"]
    words: list[list[str]] | None = None
    logits: Float32[np.ndarray, "B T V"] | None = None
    state: State | None = None

    def cut_outputs(self, part: slice, width: int) -> dict[str, Any]:
        """Return the logits and the states of some sentences."""
        return {
            "logits": None if self.logits is None else self.logits[part, :width],
            "state": None if self.state is None else jax.tree.map(lambda rows: rows[part], self.state),
        }
