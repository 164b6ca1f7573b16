"""BERT and its pretraining heads: Devlin et al. 2018, https://arxiv.org/abs/1810.04805.

The original is https://github.com/google-research/bert. The encoder has embeddings, `num_layers` times attention and
feed-forward (each followed by dropout, the residual and a layer norm), and the pooler. The parameter tree has one
entry per layer, also for `scan`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.nn import Dense, LayerNorm, SelfAttention, activation, dropout, embed, truncated_normal
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.parameter import parameter

Params = Mapping[str, Any]


class Embeddings(nn.Module):
    """Word, position and type embeddings, summed and normalised."""

    config: BertConfig

    @nn.compact
    def __call__(
        self, tokens: Int[AnyArray, "B T"], types: Int[AnyArray, "B T"] | None, positions: Int[AnyArray, "B T"] | None
    ) -> Float[Array, "B T D"]:
        """Return the sum of the three; an id outside its table becomes NaN."""
        c = self.config
        b, t = tokens.shape
        if positions is None:
            if t > c.max_positions:
                raise ValueError(too_long(t, c.max_positions))
            positions = jnp.broadcast_to(jnp.arange(t)[None, :], (b, t))
        types = jnp.zeros((b, t), jnp.int32) if types is None else types
        init = truncated_normal(c.initializer_range)
        x = embed(parameter(self, "word", init, (c.vocab_size, c.hidden_size)), tokens)
        x = x + embed(parameter(self, "position", init, (c.max_positions, c.hidden_size)), positions)
        x = x + embed(parameter(self, "type", init, (c.type_vocab_size, c.hidden_size)), types)
        return LayerNorm(c.norm_eps, name="norm")(x).astype(c.dtype)


class Attention(nn.Module):
    """Self-attention, dropout, residual, layer norm."""

    config: BertConfig

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
        attend = SelfAttention(
            c.num_heads, c.implementation, c.attention == "causal", c.attention_dropout, c.initializer_range, c.dtype
        )
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        y, attentions = attend(x, segments, lengths=lengths, dropout_key=maps_key, maps=maps)
        return LayerNorm(c.norm_eps, name="norm")(x + dropout(y, c.dropout, output_key)), attentions


class FeedForward(nn.Module):
    """Two dense layers, dropout, residual, layer norm."""

    config: BertConfig

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None) -> Float[Array, "B T D"]:
        """Return the outputs of each token."""
        c = self.config
        y = Dense(c.feed_forward_size, c.initializer_range, c.dtype, name="up")(x)
        y = Dense(c.hidden_size, c.initializer_range, c.dtype, name="down")(activation(c.activation)(y))
        return LayerNorm(c.norm_eps, name="norm")(x + dropout(y, c.dropout, key))


class Layer(nn.Module):
    """One layer of the encoder."""

    config: BertConfig

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


class Bert(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: BertConfig
    add_pooler: bool = True

    @nn.compact
    def __call__(
        self,
        tokens: Int[AnyArray, "B T"],
        types: Int[AnyArray, "B T"] | None = None,
        positions: Int[AnyArray, "B T"] | None = None,
        segments: Int[AnyArray, "B T"] | None = None,
        *,
        lengths: Int[AnyArray, " B"] | None = None,
        nsp_positions: Int[AnyArray, "B S"] | None = None,
        deterministic: bool = True,
        layers: str | Sequence[int] | None = None,
        attentions: bool = False,
    ) -> Output:
        """Encode a batch.

        `types` default to 0, `positions` count from 0 along the row (packed rows must give theirs). `segments` are 0
        for padding and 1, 2, … for the sequences of a row; rows of one sequence can give `lengths` instead; with
        neither, every token is real. `layers` is "all" or layer numbers (0 is the embeddings, -1 the last). The pooled
        vector is taken at the row's first token, or at `nsp_positions`.
        """
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        # One key for the embeddings and one per layer, for every way to run the layers.
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)

        x = Embeddings(c, name="embeddings")(tokens, types, positions)
        x = embeddings = dropout(x, c.dropout, None if keys is None else keys[0])

        # Layers are functions of their parameters, so loop, remat and scan run the same code with the same keys.
        layer = Layer(c, parent=None)
        # `self.param` alone would trace the initialisation of every layer whenever the model is traced.
        params = [
            self.get_variable("params", name)
            if self.has_variable("params", name)
            else self.param(name, lambda key: layer.init(key, x)["params"])
            for name in (f"layer_{i}" for i in range(c.num_layers))
        ]

        def step(x: Array, of_layer: tuple[Params, PRNGKeyArray | None]) -> tuple[Array, Any]:
            p, key = of_layer
            x, maps = layer.apply({"params": p}, x, segments, lengths, key, attentions)
            return x, (x if wanted else None, maps)

        if self.is_initializing():
            step = jax.jit(step)  # traced once for all layers
        elif c.remat:
            step = jax.checkpoint(step, prevent_cse=not c.scan)
        if c.scan:
            x, (hidden, maps) = jax.lax.scan(step, x, (stack(params), None if keys is None else keys[1:]))
        else:
            collected: list[Any] = []
            for i in range(c.num_layers):
                x, kept = step(x, (params[i], None if keys is None else keys[i + 1]))
                collected.append(kept)
            hidden, maps = stack(collected)
        if wanted:
            hidden = jnp.concatenate([embeddings[None], hidden])[np.array(wanted)]

        pooled = None
        if self.add_pooler:
            first = x[:, 0] if nsp_positions is None else at_positions(x, nsp_positions)
            pooled = jnp.tanh(Dense(c.hidden_size, c.initializer_range, c.dtype, name="pooler")(first))
        return Output(x, hidden, maps, pooled)


def stack(trees: Sequence[Any]) -> Any:
    """Return trees of the same structure as one tree with a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def at_positions(x: Float[Array, "B T D"], positions: Int[AnyArray, "B K"]) -> Float[Array, "B K D"]:
    """Return the vectors at some positions of each row."""
    return jnp.take_along_axis(x, jnp.asarray(positions)[:, :, None], axis=1, mode="fill", fill_value=jnp.nan)


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
        bias = parameter(self, "bias", nn.initializers.zeros, (c.vocab_size,))
        logits = jnp.einsum("btd,vd->btv", x, words.astype(x.dtype), preferred_element_type=jnp.float32)
        return logits + bias[None, None, :]


class NextSentence(nn.Module):
    """Predict whether the second segment follows the first (class 0) or is a random one (class 1)."""

    config: BertConfig

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B D"]) -> Float32[Array, "*B 2"]:
        """Return the two logits of each pooled vector."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        return dense(pooled)
