"""A frozen encoder's layers as the features of a task: one, several, or a learned mix, optionally through BiLSTMs.

Devlin et al. 2018, section 5.3: the last four layers, concatenated, into two BiLSTMs of 768 for named entities.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.nn import bilstm, dropout, init_bilstm, scalar_mix
from bert_elmo_jax.nn.layers import layer_numbers

Combine = Literal["concat", "mix"]


@dataclass(frozen=True)
class Features:
    """The layers to read (0: the embeddings, -1: the last), how to combine them, and the BiLSTMs on top.

    `mix` is γ · Σ softmax(w) · layer, with w and γ learned. Without `lstm_layers` the head reads the layers.
    """

    layers: tuple[int, ...] = (-1,)
    combine: Combine = "concat"
    lstm_layers: int = 0
    lstm_size: int = 768
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.combine not in get_args(Combine):
            hint = did_you_mean(self.combine, get_args(Combine))
            raise ValueError(f"features.combine={self.combine!r} is not known; use concat or mix{hint}")
        if isinstance(self.layers, str):
            raise ValueError(f"features.layers={self.layers!r} is a text; use numbers, such as (-4, -3, -2, -1)")
        if not self.layers:
            raise ValueError("features without layers; name some, such as -4,-3,-2,-1")
        if self.lstm_layers < 0 or self.lstm_size < 1 or not 0 <= self.dropout < 1:
            shown = f"lstm_layers={self.lstm_layers}, lstm_size={self.lstm_size}, dropout={self.dropout}"
            raise ValueError(f"features: {shown}: expected 0 or more, 1 or more, and a rate from 0 to below 1")

    def width(self, hidden_size: int, num_layers: int) -> int:
        """Return the size of a piece's vector."""
        layer_numbers(self.layers, num_layers)
        if self.lstm_layers:
            return 2 * self.lstm_size
        return hidden_size * (len(self.layers) if self.combine == "concat" else 1)


class Reader(nn.Module):
    """Turn an encoder's layers into the vectors that a head reads."""

    features: Features

    @nn.compact
    def __call__(
        self, layers: Float[Array, "L B T D"], real: Bool[Array, "B T"], *, deterministic: bool = True
    ) -> Float32[Array, "B T E"]:
        """Return one vector per piece; zeros for padding."""
        f = self.features
        layers = layers.astype(jnp.float32)
        if f.combine == "mix":
            mix = self.param("mix", lambda key: {"weights": jnp.zeros(len(layers)), "gamma": jnp.ones(())})
            x = scalar_mix(layers, mix["weights"], mix["gamma"])
        else:
            x = jnp.concatenate(list(layers), axis=-1)
        lengths = real.sum(axis=1)
        for n in range(f.lstm_layers):
            key = None if deterministic else self.make_rng("dropout")
            params = self.param(f"layer_{n}", init_bilstm, x.shape[-1], f.lstm_size)
            x = bilstm(dropout(x, f.dropout, key), params, lengths)
        return jnp.where(real[..., None], x, 0.0)


def mean_over_pieces(x: Float[Array, "B T D"], segments: Int[Array, "B T"], number: int) -> Float[Array, "B S D"]:
    """Return the mean of the vectors of each of the segments 1 to `number` of a row; zeros for an empty one.

    >>> mean_over_pieces(jnp.array([[[1.0], [3.0], [9.0], [5.0]]]), jnp.array([[1, 1, 0, 2]]), 2).tolist()
    [[[2.0], [5.0]]]
    >>> mean_over_pieces(jnp.array([[[1.0], [3.0], [9.0]]]), jnp.array([[1, 1, 0]]), 1).tolist()
    [[[2.0]]]
    """
    inside = pieces_of_segments(segments, number).astype(x.dtype)
    x = jnp.where((segments > 0)[..., None], x, 0.0)
    # A device that multiplies in 16 bits by default must not round the vectors.
    total = jnp.einsum("bst,btd->bsd", inside, x, precision="highest")
    return total / jnp.maximum(inside.sum(axis=2, keepdims=True), 1.0)


def pieces_of_segments(segments: Int[Array, "B T"], number: int) -> Bool[Array, "B {number} T"]:
    """Return True at the pieces of each of the segments 1 to `number` of a row.

    >>> pieces_of_segments(jnp.array([[1, 1, 2, 0]]), 2).astype(int).tolist()
    [[[1, 1, 0, 0], [0, 0, 1, 0]]]
    """
    return segments[:, None, :] == jnp.arange(1, number + 1, dtype=segments.dtype)[None, :, None]
