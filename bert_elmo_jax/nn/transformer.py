"""The encoder of Vaswani et al. 2017, https://arxiv.org/abs/1706.03762: layers with their norms after the residuals.

Families share the layer and the loop over layers; each has its own embeddings and pooler. A configuration must have
`num_layers, hidden_size, num_heads, feed_forward_size, activation, norm_eps, dropout, attention_dropout,
initializer_range, causal, implementation, remat, scan, dtype`, and may have `key_size, value_size,
activation_dropout`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.activations import activation
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import SelfAttention
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.layers import Dense, LayerNorm
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.rotary import Angles

Params = Mapping[str, Any]


class Attention(nn.Module):
    """Self-attention, dropout, residual, layer norm."""

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
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested."""
        c = self.config
        sizes: dict[str, Any] = {name: getattr(c, name, None) for name in ("key_size", "value_size")}
        attend = SelfAttention(
            c.num_heads, c.implementation, c.causal, c.attention_dropout, c.initializer_range, c.dtype, **sizes
        )
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        y, attentions = attend(x, segments, lengths=lengths, dropout_key=maps_key, maps=maps)
        return LayerNorm(c.norm_eps, name="norm")(x + dropout(y, c.dropout, output_key)), attentions


class FeedForward(nn.Module):
    """Two dense layers, dropout, residual, layer norm."""

    config: Any

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None) -> Float[Array, "B T D"]:
        """Return the outputs of each token."""
        c = self.config
        y = Dense(c.feed_forward_size, c.initializer_range, c.dtype, name="up")(x)
        y = activation(c.activation)(y)
        rate: float = getattr(c, "activation_dropout", 0.0)
        y = dropout(y, rate, None if key is None or not rate else jax.random.fold_in(key, 1))
        y = Dense(c.hidden_size, c.initializer_range, c.dtype, name="down")(y)
        return LayerNorm(c.norm_eps, name="norm")(x + dropout(y, c.dropout, key))


class Layer(nn.Module):
    """One layer of the encoder."""

    config: Any

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; without a key there is no dropout."""
        keys = (None, None, None) if key is None else jax.random.split(key, 3)
        x, attentions = Attention(self.config, name="attention")(x, segments, lengths, keys[0], keys[1], maps)
        return FeedForward(self.config, name="feed_forward")(x, keys[2]), attentions


class Encoded(NamedTuple):
    """The results of `run_layers`; fields that were not requested are None."""

    last: Float[Array, "B T D"]
    layers: Float[Array, "N B T D"] | None
    attentions: Float32[Array, "L B A T T"] | None


def run_layers(
    parent: nn.Module,
    layer: nn.Module,
    x: Float[Array, "B T D"],
    segments: AnyArray | None = None,
    lengths: AnyArray | None = None,
    keys: Array | None = None,
    *,
    wanted: Sequence[int] = (),
    maps: bool = False,
    angles: Angles | None = None,
    more: tuple[Any, ...] = (),
    each: Float[Array, " L"] | None = None,
) -> Encoded:
    """Run the layers of `parent.config` on the embeddings `x`; call it in the compact method of `parent`.

    `layer` is an unbound module such as `Layer(config, parent=None)`. The parameters of layer i are `layer_i` of
    `parent`, also for `config.scan`. `keys` has one key per layer. `wanted` are numbers of layers to return. A layer
    that rotates queries and keys gets `angles`; `more` are further arguments of a layer, such as a decoder's source. A
    layer with a number of its own gets its entry of `each` last.
    """
    c: Any = parent.config
    shared = more if angles is None else (angles, *more)

    def draw(key: PRNGKeyArray) -> Any:
        return layer.init(key, x, None, None, None, False, *shared)["params"]

    draw_once = jax.jit(draw)  # traced once for all layers, where only shapes are computed
    # Layers are functions of their parameters, so loop, remat and scan run the same code with the same keys.
    # `parent.param` alone would trace the initialisation of every layer whenever the model is traced.
    params = [
        parent.get_variable("params", name)
        if parent.has_variable("params", name)
        else parent.param(name, lambda key: (draw_once if isinstance(key, jax.core.Tracer) else draw)(key))
        for name in (f"layer_{i}" for i in range(c.num_layers))
    ]

    def step(x: Array, of_layer: tuple[Params, PRNGKeyArray | None, Array | None]) -> tuple[Array, Any]:
        p, key, own = of_layer
        further = shared if own is None else (*shared, own)
        y: Any = layer.apply({"params": p}, x, segments, lengths, key, maps, *further)
        return y[0], (y[0] if wanted else None, y[1])

    embeddings = x
    if parent.is_initializing():
        step = jax.jit(step)  # traced once for all layers
    elif c.remat:
        step = jax.checkpoint(step, prevent_cse=not c.scan)
    if c.scan:
        x, (hidden, attentions) = jax.lax.scan(step, x, (stack(params), keys, each))
    else:
        collected: list[Any] = []
        for i in range(c.num_layers):
            x, kept = step(x, (params[i], None if keys is None else keys[i], None if each is None else each[i]))
            collected.append(kept)
        hidden, attentions = stack(collected)
    if wanted:
        hidden = jnp.concatenate([embeddings[None], hidden])[np.array(wanted)]
    return Encoded(x, hidden, attentions)


def stack(trees: Sequence[Any]) -> Any:
    """Return trees of the same structure as one tree with a new first axis.

    >>> stack([{"bias": jnp.zeros(3)}, {"bias": jnp.ones(3)}])["bias"].shape
    (2, 3)
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def at_positions(x: Float[Array, "B T D"], positions: Int[AnyArray, "B K"]) -> Float[Array, "B K D"]:
    """Return the vectors at some positions of each row.

    >>> at_positions(jnp.array([[[1.0], [2.0], [3.0]]]), jnp.array([[2, 0]])).tolist()
    [[[3.0], [1.0]]]
    """
    return jnp.take_along_axis(x, jnp.asarray(positions)[:, :, None], axis=1, mode="fill", fill_value=jnp.nan)


class Pooler(nn.Module):
    """A dense layer with an activation on the vectors of some positions, by default the first of each row."""

    config: Any
    activation: str = "tanh"

    @nn.compact
    def __call__(
        self, x: Float[Array, "B T D"], positions: Int[AnyArray, "B S"] | None = None
    ) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return one vector per row, or one per entry of `positions`."""
        c = self.config
        dense = Dense(c.hidden_size, c.initializer_range, c.dtype)
        nn.share_scope(self, dense)
        return activation(self.activation)(dense(x[:, 0] if positions is None else at_positions(x, positions)))


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
