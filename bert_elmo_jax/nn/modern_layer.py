"""A layer of the encoder with the choices of later papers: where the norm is, gated units, rotary positions, no biases.

`nn.transformer.Layer` is the layer of the original. This one has the same parameter paths, so the same sharding rules
and rates apply. A configuration needs three more fields: `norm` ("post" or "pre"), `feed_forward` ("dense" or "gated")
and `layer_bias`.
"""

from typing import Any

import flax.linen as nn
import jax
from jaxtyping import Array, Float, Float32, PRNGKeyArray

from bert_elmo_jax.nn.activations import activation
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import SelfAttention
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gated import GatedFeedForward
from bert_elmo_jax.nn.layers import Dense, LayerNorm
from bert_elmo_jax.nn.rotary import Angles


class ModernAttention(nn.Module):
    """Self-attention, dropout and residual, with a layer norm before (`pre`) or after them (`post`)."""

    config: Any

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None,
        lengths: AnyArray | None,
        maps_key: PRNGKeyArray | None,
        output_key: PRNGKeyArray | None,
        maps: bool,
        angles: Angles | None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested."""
        c = self.config
        attend = SelfAttention(
            c.num_heads, c.implementation, c.causal, c.attention_dropout, c.initializer_range, c.dtype,
            use_bias=c.layer_bias,
        )  # fmt: skip
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        norm = LayerNorm(c.norm_eps, c.layer_bias, name="norm")
        read = norm(x) if c.norm == "pre" else x
        y, attentions = attend(read, segments, lengths=lengths, angles=angles, dropout_key=maps_key, maps=maps)
        x = x + dropout(y, c.dropout, output_key)
        return x if c.norm == "pre" else norm(x), attentions


class ModernFeedForward(nn.Module):
    """Two dense layers or a gated unit, dropout and residual, with a layer norm before or after them."""

    config: Any

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None) -> Float[Array, "B T D"]:
        """Return the outputs of each token."""
        c = self.config
        how: dict[str, Any] = {"stddev": c.initializer_range, "dtype": c.dtype, "use_bias": c.layer_bias}
        norm = LayerNorm(c.norm_eps, c.layer_bias, name="norm")
        read = norm(x) if c.norm == "pre" else x
        if c.feed_forward == "gated":
            gated = GatedFeedForward(c.feed_forward_size, c.activation, **how)
            nn.share_scope(self, gated)  # gate, up and down are siblings of the norm
            y = gated(read)
        else:
            hidden = activation(c.activation)(Dense(c.feed_forward_size, **how, name="up")(read))
            y = Dense(c.hidden_size, **how, name="down")(hidden)
        x = x + dropout(y, c.dropout, key)
        return x if c.norm == "pre" else norm(x)


class ModernLayer(nn.Module):
    """One layer of the encoder. With `norm="pre"`, the encoder must normalise the outputs of its last layer."""

    config: Any

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
        angles: Angles | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; `angles` rotate queries and keys; no key: no dropout."""
        keys = (None, None, None) if key is None else jax.random.split(key, 3)
        attend = ModernAttention(self.config, name="attention")
        x, attentions = attend(x, segments, lengths, keys[0], keys[1], maps, angles)
        return ModernFeedForward(self.config, name="feed_forward")(x, keys[2]), attentions
