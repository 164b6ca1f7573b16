"""The layers of transformers, for Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, and the encoders after it.

Families share the layer and the loop over layers; each has its own embeddings and pooler. A configuration must have
`num_layers, hidden_size, num_heads, feed_forward_size, activation, norm_eps, dropout, attention_dropout,
initializer_range, causal, attention, remat, scan, dtype`, and may have `key_size, value_size, key_value_heads`.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.activations import activation
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import SelfAttention
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gated import GatedFeedForward
from bert_elmo_jax.nn.layers import Dense, LayerNorm, RMSNorm, truncated_normal
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.rotary import Angles


class LayerParts(NamedTuple):
    """Parts of a layer that families choose; the defaults are the layer of Vaswani et al."""

    norm_first: bool = False  # norms come before attention and feed-forward, not after the residuals
    first_norm: bool = True  # attention has a norm; False for a first layer that reads normalised embeddings
    gated: bool = False  # the feed-forward layer is a gated unit
    attention_bias: bool = True
    feed_forward_bias: bool = True
    norm_bias: bool = True
    rms_norm: bool = False  # norms do not subtract the mean
    window: int | None = None  # the pieces on each side that a piece sees; None: all
    # The dropout of attention's outputs, of the hidden units and of the outputs of feed-forward; None: `dropout`.
    attention_rate: float | None = None
    hidden_rate: float = 0.0
    output_rate: float | None = None
    output_stddev: float | None = None  # of the kernels before residuals; None: `initializer_range`
    cut: float = 2.0  # of the initialisers, in standard deviations


def make_norm(config: Any, parts: LayerParts) -> nn.Module:
    """Return the norm of a layer, `norm`, in a compact method."""
    if parts.rms_norm:
        return RMSNorm(config.norm_eps, name="norm")
    return LayerNorm(config.norm_eps, parts.norm_bias, name="norm")


class Attention(nn.Module):
    """Self-attention, dropout and residual, with a layer norm before or after them."""

    config: Any
    parts: LayerParts = LayerParts()

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None,
        lengths: AnyArray | None,
        maps_key: PRNGKeyArray | None,
        output_key: PRNGKeyArray | None,
        maps: bool,
        angles: Angles | None = None,
        scale: Float[Array, ""] | None = None,
        bias: Float[Array, "_ A T T"] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested."""
        c, p = self.config, self.parts
        attend = SelfAttention(
            c.num_heads, c.attention, c.causal, c.attention_dropout, c.initializer_range, c.dtype, p.window,
            p.attention_bias, p.output_stddev, p.cut, getattr(c, "key_size", None), getattr(c, "value_size", None),
            getattr(c, "key_value_heads", None),
        )  # fmt: skip
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        norm = make_norm(c, p)
        inputs = norm(x) if p.norm_first and p.first_norm else x
        y, attentions = attend(
            inputs, segments, lengths=lengths, angles=angles, dropout_key=maps_key, maps=maps, scale=scale, bias=bias
        )
        x = x + dropout(y, c.dropout if p.attention_rate is None else p.attention_rate, output_key)
        return x if p.norm_first else norm(x), attentions


class FeedForward(nn.Module):
    """Two dense layers or a gated unit, dropout and residual, with a layer norm before or after them."""

    config: Any
    parts: LayerParts = LayerParts()

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None = None) -> Float[Array, "B T D"]:
        """Return the outputs of each token."""
        c, p = self.config, self.parts
        norm = make_norm(c, p)
        inputs = norm(x) if p.norm_first else x
        if p.gated:
            gated = GatedFeedForward(
                c.feed_forward_size, c.activation, p.hidden_rate, c.initializer_range, c.dtype, p.feed_forward_bias,
                p.output_stddev, p.cut,
            )  # fmt: skip
            nn.share_scope(self, gated)  # gate, up and down are siblings of the norm
            y = gated(inputs, key)
        else:
            kernel: dict[str, Any] = {"dtype": c.dtype, "use_bias": p.feed_forward_bias, "cut": p.cut}
            hidden = Dense(c.feed_forward_size, c.initializer_range, name="up", **kernel)(inputs)
            hidden_key = None if key is None or not p.hidden_rate else jax.random.fold_in(key, 1)
            hidden = dropout(activation(c.activation)(hidden), p.hidden_rate, hidden_key)
            stddev = c.initializer_range if p.output_stddev is None else p.output_stddev
            y = Dense(c.hidden_size, stddev, name="down", **kernel)(hidden)
        x = x + dropout(y, c.dropout if p.output_rate is None else p.output_rate, key)
        return x if p.norm_first else norm(x)


class Layer(nn.Module):
    """One layer of the encoder. With `norm_first`, the encoder must normalise the outputs of its last layer."""

    config: Any
    parts: LayerParts = LayerParts()

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
        angles: Angles | None = None,
        scale: Float[Array, ""] | None = None,
        bias: Float[Array, "_ A T T"] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; without a key there is no dropout.

        `angles` rotate queries and keys, `scale` multiplies the queries, and `bias` is added to the scores.
        """
        keys = (None, None, None) if key is None else jax.random.split(key, 3)
        attend = Attention(self.config, self.parts, name="attention")
        x, attentions = attend(x, segments, lengths, keys[0], keys[1], maps, angles, scale, bias)
        return FeedForward(self.config, self.parts, name="feed_forward")(x, keys[2]), attentions


def at_positions(x: Float[Array, "B T D"], positions: Int[AnyArray, "B K"]) -> Float[Array, "B K D"]:
    """Return the vectors at some positions of each row; NaN outside the row."""
    return jnp.take_along_axis(x, jnp.asarray(positions)[:, :, None], axis=1, mode="fill", fill_value=jnp.nan)


class Pooler(nn.Module):
    """A dense layer with an activation on the vectors of some positions, by default the first of each row."""

    config: Any
    activation: str = "tanh"

    @nn.compact
    def __call__(
        self, x: Float[Array, "B T D"], positions: Int[AnyArray, "B S"] | None = None, every: bool = False
    ) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return one vector per row, one per entry of `positions`, or one for `every` vector."""
        c = self.config
        dense = Dense(c.hidden_size, c.initializer_range, c.dtype)
        nn.share_scope(self, dense)
        if not every:
            x = x[:, 0] if positions is None else at_positions(x, positions)
        return activation(self.activation)(dense(x))


class MaskedLM(nn.Module):
    """Predict the pieces at some positions: dense, activation, layer norm, then the transposed word embeddings.

    The dense layer has the width of the word embeddings. `activation` replaces the configuration's. Training gives the
    positions that have a target: for 20 of 128, the head costs a sixth.
    """

    config: Any
    activation: str | None = None

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V E"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K V"] | Float32[Array, "B T V"]:
        """Return the logits at `positions [B, K]`, or everywhere."""
        c = self.config
        x = hidden if positions is None else at_positions(hidden, positions)
        x = Dense(words.shape[1], c.initializer_range, c.dtype, name="dense")(x)
        x = LayerNorm(c.norm_eps, name="norm")(activation(self.activation or c.activation)(x))
        bias = parameter(self, "bias", nn.initializers.zeros, (words.shape[0],))
        logits = word_logits(x, words)
        return logits + bias[None, None, :]


class NextSentence(nn.Module):
    """Predict whether the second segment follows the first (class 0) or is a random one (class 1)."""

    config: Any

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B D"]) -> Float32[Array, "*B 2"]:
        """Return the two logits of each pooled vector."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        return dense(pooled)


class UntiedLM(nn.Module):
    """Predict the pieces at some positions by a dense layer that is not tied to the embeddings."""

    config: Any
    use_bias: bool = False

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V E"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K V"] | Float32[Array, "B T V"]:
        """Return the logits at `positions [B, K]`, or everywhere; of `words` only the number counts."""
        kernel = parameter(
            self, "kernel", truncated_normal(self.config.initializer_range), (hidden.shape[-1], words.shape[0])
        )
        x = hidden if positions is None else at_positions(hidden, positions)
        logits = word_logits(x, jnp.asarray(kernel).T)
        if not self.use_bias:
            return logits
        return logits + parameter(self, "bias", nn.initializers.zeros, (words.shape[0],))[None, None, :]
