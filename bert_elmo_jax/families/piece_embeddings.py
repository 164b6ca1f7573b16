"""The embeddings of transformers on pieces: words, positions, and types if the family has them."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.nn import LayerNorm, embed, truncated_normal
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.parameter import parameter


class Embeddings(nn.Module):
    """Word, position and type embeddings, summed and normalised.

    `types` is the number of types, 0 for a family without. `size` is the width, by default `hidden_size`. Position 0 is
    row `first` of the table of positions, which has `first` rows more than `max_positions`; `learned=False` leaves the
    table out.
    """

    config: Any  # needs vocab_size, hidden_size, max_positions, initializer_range, norm_eps, dtype
    types: int = 0
    size: int | None = None
    first: int = 0
    init_positions: Callable[..., Array] | None = None
    learned: bool = True  # positions have embeddings

    @nn.compact
    def __call__(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        positions: Int[AnyArray, "B T"] | None = None,
    ) -> Float[Array, "B T E"]:
        """Return the sum; an id outside its table becomes NaN. A family without types does not read `types`."""
        c = self.config
        b, t = tokens.shape
        if positions is None:
            if t > c.max_positions:
                raise ValueError(too_long(t, c.max_positions))
            positions = jnp.broadcast_to(jnp.arange(t)[None, :], (b, t))
        size, init = self.size or c.hidden_size, truncated_normal(c.initializer_range)
        x = embed(parameter(self, "word", init, (c.vocab_size, size)), tokens)
        if self.learned:
            table = parameter(self, "position", self.init_positions or init, (c.max_positions + self.first, size))
            x = x + embed(table, positions + self.first if self.first else positions)
        if self.types:
            types = jnp.zeros((b, t), jnp.int32) if types is None else types
            x = x + embed(parameter(self, "type", init, (self.types, size)), types)
        return LayerNorm(c.norm_eps, name="norm")(x).astype(c.dtype)
