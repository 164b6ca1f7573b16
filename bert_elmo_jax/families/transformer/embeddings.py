"""The embeddings of a Transformer: pieces, times √d, plus positions, and a norm if it has one."""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import LayerNorm, embed, truncated_normal
from bert_elmo_jax.nn.parameter import parameter


class Embeddings(nn.Module):
    """Embeddings of pieces and positions; with `words`, the table of pieces is another part's."""

    config: TransformerConfig

    @nn.compact
    def __call__(
        self,
        tokens: Int[AnyArray, "B T"],
        positions: Int[AnyArray, "B T"] | None = None,
        words: Float[AnyArray, "V D"] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float[AnyArray, "V D"]]:
        """Return the sums and the table of pieces; an id or a position outside its table becomes NaN."""
        c = self.config
        b, t = tokens.shape
        if positions is None:
            if t > c.max_positions:
                raise ValueError(too_long(t, c.max_positions))
            positions = jnp.broadcast_to(jnp.arange(t)[None, :], (b, t))
        scale = math.sqrt(c.hidden_size) if c.scale_embeddings else 1.0
        # Scaled embeddings then have the variance 1.
        stddev = c.hidden_size**-0.5 if c.initializer_range is None else c.initializer_range
        init = truncated_normal(stddev)
        table = parameter(self, "word", init, (c.vocab_size, c.hidden_size)) if words is None else words
        x = embed(table, tokens)
        # The padding piece, which may begin the target, learns nothing here; a tied softmax still trains its row.
        x = jnp.where((jnp.asarray(tokens) == c.pad_id)[:, :, None], jax.lax.stop_gradient(x), x) * scale
        if c.positions == "learned":
            positions = jnp.asarray(positions) + c.first_position
            places = parameter(self, "position", init, (c.max_positions + c.first_position, c.hidden_size))
        else:
            places = jnp.asarray(sinusoids(c.max_positions, c.hidden_size))
        x = x + embed(places, positions)
        return (LayerNorm(c.norm_eps, name="norm")(x) if c.norm_embeddings else x).astype(c.dtype), table


def sinusoids(rows: int, columns: int) -> Float32[np.ndarray, "{rows} {columns}"]:
    """Return the table of positions, sines in the first half of the columns and cosines in the second.

    The paper's table alternates them, which is the same up to the order of the columns.
    """
    angles = np.arange(rows)[:, None] / 10_000 ** (2 * (np.arange(columns) // 2) / columns)[None, :]
    return np.concatenate([np.sin(angles[:, ::2]), np.cos(angles[:, 1::2])], axis=1).astype(np.float32)
