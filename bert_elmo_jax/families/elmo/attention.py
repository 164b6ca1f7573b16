"""One direction of a biLM that attends to the words before instead of carrying a state: a step from ELMo to BERT.

The layers follow Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, with causal attention and sines as
positions. No released ELMo has them.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.piece_embeddings import interleaved_sinusoids
from bert_elmo_jax.nn import dropout, look_up
from bert_elmo_jax.nn.transformer import Layer


class LayerSizes(NamedTuple):
    """The sizes of the layers, under the names that `nn.transformer.Layer` reads."""

    hidden_size: int
    num_heads: int
    feed_forward_size: int
    dropout: float
    dtype: str
    activation: str = "gelu"
    attention: str = "reference"
    causal: bool = True
    attention_dropout: float = 0.0
    initializer_range: float = 0.02
    norm_eps: float = 1e-12


class AttentionDirection(nn.Module):
    """The layers of one direction, with the arguments and results of the LSTMs' `Direction`; the state is not used."""

    config: ElmoConfig

    @nn.compact
    def __call__(
        self,
        table: Float[Array, "N U P"],
        words: Int[Array, "B T"],
        lengths: Int[Array, " B"],
        cell: Float32[Array, "L B C"],
        hidden: Float32[Array, "L B P"],
        key: PRNGKeyArray | None,
    ) -> tuple[list[Float[Array, "B T P"]], Float32[Array, "L B C"], Float32[Array, "L B P"]]:
        """Return the outputs of every layer in reading order, and the state as it was."""
        c = self.config
        keys: list[Any] = [None] * (c.num_layers + 1) if key is None else list(jax.random.split(key, c.num_layers + 1))
        sizes = LayerSizes(c.width, c.num_heads, 4 * c.width, c.dropout, c.dtype)
        x = look_up(table, words.T).swapaxes(0, 1)
        places = interleaved_sinusoids(None, (words.shape[1], c.width)).astype(x.dtype)
        # A token vector of unit length would vanish next to the sines: it is scaled as in the paper.
        x = dropout(x * jnp.asarray(c.width**0.5, x.dtype) + places[None], c.dropout, keys[-1])
        outputs = []
        for n in range(c.num_layers):
            x, _ = Layer(sizes, name=f"layer_{n}")(x, key=keys[n])
            outputs.append(x)
        return outputs, cell, hidden
