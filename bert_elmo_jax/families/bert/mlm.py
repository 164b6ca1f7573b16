"""The masked-language-model head."""

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.bert.model import BertConfig, at_positions
from bert_elmo_jax.nn import Dense, LayerNorm, activation
from bert_elmo_jax.nn.any_array import AnyArray


class MaskedLM(nn.Module):
    """Predict the pieces at some positions: dense, activation, layer norm, then the transposed word embeddings.

    Training gives the positions that have a target: for 20 of 128, the head costs a sixth.
    """

    config: BertConfig

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V D"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K V"] | Float32[Array, "B T V"]:
        """Return the logits at `positions [B, K]`, or everywhere."""
        c = self.config
        x = hidden if positions is None else at_positions(hidden, positions)
        x = activation(c.activation)(Dense(c.hidden_size, c.initializer_range, c.dtype, name="dense")(x))
        x = LayerNorm(c.norm_eps, name="norm")(x)
        bias = self.param("bias", nn.initializers.zeros, (c.vocab_size,))
        logits = jnp.einsum("btd,vd->btv", x, words.astype(x.dtype), preferred_element_type=jnp.float32)
        return logits + bias[None, None, :]
