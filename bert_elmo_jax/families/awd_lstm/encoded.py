"""The result of an AWD-LSTM for a list of sentences, or for rows of ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float32, Int32

from bert_elmo_jax.encoders.encoded import show_shapes, to_slice
from bert_elmo_jax.families.awd_lstm.model import State


@dataclass(frozen=True, eq=False, repr=False)
class AwdLstmEncoded:
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

    @property
    def last(self) -> Float32[np.ndarray, "B T E"]:
        """The last layer."""
        return self.layers[-1]

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        return show_shapes("AwdLstmEncoded", len(self), last=self.last)

    def __getitem__(self, part: slice | int) -> "AwdLstmEncoded":
        """Return some of the sentences, or one, padded to their longest; the arrays are views."""
        part = to_slice(part, len(self))
        mask = self.mask[part]
        width = int(mask.sum(axis=1).max(initial=0))
        return AwdLstmEncoded(
            tuple(layer[part, :width] for layer in self.layers),
            mask[:, :width],
            None if self.words is None else self.words[part],
            None if self.logits is None else self.logits[part, :width],
            None if self.state is None else jax.tree.map(lambda rows: rows[part], self.state),
        )

    def __iter__(self) -> Iterator["AwdLstmEncoded"]:
        return (self[number] for number in range(len(self)))


def blank(sentences: Sequence[list[str]], widths: Sequence[int]) -> AwdLstmEncoded:
    """Return zeros for the layers of sentences; `widths` has one for each layer."""
    lengths = np.array([len(words) for words in sentences])
    mask = np.arange(lengths.max()) < lengths[:, None]
    layers = tuple(np.zeros((*mask.shape, width), np.float32) for width in widths)
    return AwdLstmEncoded(layers, mask.astype(np.int32), list(sentences))


def join(parts: Sequence[AwdLstmEncoded]) -> AwdLstmEncoded:
    """Return sentences that were encoded one by one as one object."""
    whole = blank([words for part in parts for words in part.words or ()], [x.shape[-1] for x in parts[0].layers])
    for n, part in enumerate(parts):
        for target, source in zip(whole.layers, part.layers):
            target[n, : source.shape[1]] = source[0]
    return whole
