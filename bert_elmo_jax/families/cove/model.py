"""CoVe's encoder: McCann et al. 2017, https://arxiv.org/abs/1708.00107; the original, github.com/salesforce/cove.

A bidirectional LSTM over fixed word vectors, trained as the encoder of a translation model. Unlike ELMo's, each layer
reads both directions of the layer below.
"""

from collections.abc import Mapping
from typing import Any, no_type_check

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.cove.config import CoveConfig
from bert_elmo_jax.nn import dropout, init_bilstm
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import embed
from bert_elmo_jax.nn.lstm import bilstm_with_states


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class CoveOutput:
    """The output of a CoVe; all arrays are zero after the end of a row.

    `layers` are the word vectors [B, T, D] and the output of each LSTM layer [B, T, 2·H]: the widths differ. `cells`
    and `hidden` are the states after the last word of each direction, the two side by side.
    """

    layers: tuple[Float[Array, "B T _"], ...]
    cells: Float32[Array, "L B S"]
    hidden: Float32[Array, "L B S"]

    @property
    def last(self) -> Float[Array, "B T S"]:
        """The last layer."""
        return self.layers[-1]


class Cove(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: CoveConfig

    @nn.compact
    def __call__(
        self, vectors: Float[AnyArray, "B T D"], lengths: Int[AnyArray, " B"], *, deterministic: bool = True
    ) -> CoveOutput:
        """Read word vectors; each row has `lengths` words. Dropout applies to the input and output of every layer."""
        c = self.config
        lengths = jnp.asarray(lengths, jnp.int32)
        keys: list[Any] = [None] * (c.num_layers + 1)
        if not deterministic and c.dropout:
            keys = list(jax.random.split(self.make_rng("dropout"), c.num_layers + 1))
        real = (jnp.arange(vectors.shape[1], dtype=jnp.int32)[None, :] < lengths[:, None])[:, :, None]
        vectors = jnp.where(real, jnp.asarray(vectors).astype(c.dtype), 0.0)
        layers, cells, hidden = [dropout(vectors, c.dropout, keys[0])], [], []
        for n in range(c.num_layers):
            x = layers[-1]
            params = self.param(f"layer_{n}", init_bilstm, x.shape[-1], c.lstm_size)
            y, cell, state = bilstm_with_states(x, params, lengths)
            layers.append(dropout(y, c.dropout, keys[n + 1]))
            cells.append(cell)
            hidden.append(state)
        return CoveOutput(tuple(layers), jnp.stack(cells), jnp.stack(hidden))


def look_up_vectors(
    config: CoveConfig, params: Mapping[str, Any], words: Int[AnyArray, "B T"]
) -> Float[Array, "B T D"]:
    """Return the word vectors of ids from the model's own table; without `train_vectors` they have no gradient."""
    table = jnp.asarray(params["encoder"]["embeddings"]["word"])
    if not config.train_vectors:
        return embed(jax.lax.stop_gradient(table), words)
    known = jnp.asarray(words) != config.unk_id  # unknown words stay zero, as encoders read them
    return embed(table, words) * known[..., None].astype(table.dtype)


def stack_layers(layers: tuple[Float[AnyArray, "B T _"], ...], width: int) -> Float[Array, "L B T {width}"]:
    """Return layers as one array, the narrower ones padded with zeros."""
    return jnp.stack([jnp.pad(layer, [(0, 0), (0, 0), (0, width - layer.shape[-1])]) for layer in layers])
