"""The decoder of Vaswani et al. 2017: layers that attend to the target so far and to the source.

A layer computes a whole target at once (`__call__`) or continues one piece by piece (`step`), with the keys and values
of the earlier pieces kept in memory. Both use the same parameters, and their numbers are equal.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import visible
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.layers import Dense, LayerNorm
from bert_elmo_jax.nn.matrix_product import float32_scores
from bert_elmo_jax.nn.transformer import FeedForward, LayerParts


class KeysValues(NamedTuple):
    """The keys and values of S places."""

    keys: Float[Array, "B S A H"]
    values: Float[Array, "B S A V"]


def cross_maps(
    query: Float[Array, "B U A H"], keys: Float[Array, "B S A H"], sees: Bool[Array, "B U S"] | None = None
) -> Float32[Array, "B A U S"]:
    """Return the attention of each query (third axis) to each key (last axis); `sees` marks the visible keys.

    A query that sees nothing, such as padding, attends to all keys equally, so that its row stays finite.

    >>> ones, sees = jnp.ones((1, 2, 1, 4)), jnp.array([[[True, False], [False, False]]])
    >>> cross_maps(ones, ones, sees)[0, 0].tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    scores = float32_scores(partial(jnp.einsum, "buah,bsah->baus"), query, keys)
    scores = scores / math.sqrt(query.shape[-1])
    if sees is not None:
        scores = jnp.where(jnp.broadcast_to(sees[:, None], scores.shape), scores, jnp.finfo(jnp.float32).min)
    return jax.nn.softmax(scores)


class CrossAttention(nn.Module):
    """Attention to given keys and values, dropout, residual, layer norm.

    The configuration has the fields that `nn.transformer` needs, and `activation_dropout`.
    """

    config: Any

    def setup(self) -> None:
        """Make the projections."""
        c = self.config
        head = c.hidden_size // c.num_heads
        key_size, value_size = (getattr(c, name, None) or head for name in ("key_size", "value_size"))
        how: dict[str, Any] = {"stddev": c.initializer_range, "dtype": c.dtype}
        self.query, self.key = (Dense(c.num_heads * key_size, **how) for _ in range(2))
        self.value, self.output = Dense(c.num_heads * value_size, **how), Dense(c.hidden_size, **how)
        self.norm = LayerNorm(c.norm_eps)

    def remember(self, x: Float[Array, "B S D"]) -> KeysValues:
        """Return the keys and values of vectors."""
        return KeysValues(self._split(self.key(x)), self._split(self.value(x)))

    def __call__(
        self,
        x: Float[Array, "B U D"],
        memory: KeysValues,
        sees: Bool[Array, "B U S"] | None = None,
        maps_key: PRNGKeyArray | None = None,
        output_key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "B U D"], Float32[Array, "B A U S"]]:
        """Return the outputs, and the attention maps before dropout."""
        c = self.config
        maps = cross_maps(self._split(self.query(x)), memory.keys, sees)
        weights = dropout(maps.astype(memory.values.dtype), c.attention_dropout, maps_key)
        y = jnp.einsum("baus,bsah->buah", weights, memory.values)
        y = self.output(y.reshape(*x.shape[:2], -1))
        return self.norm(x + dropout(y, c.dropout, output_key)), maps

    def _split(self, x: Float[Array, "B S _"]) -> Float[Array, "B S A _"]:
        return x.reshape(*x.shape[:2], self.config.num_heads, -1)


class DecoderLayer(nn.Module):
    """One layer of the decoder: attention to the target so far, attention to the source, feed-forward."""

    config: Any

    def setup(self) -> None:
        """Make the three parts."""
        self.attention, self.cross_attention = CrossAttention(self.config), CrossAttention(self.config)
        self.feed_forward = FeedForward(self.config, LayerParts(hidden_rate=self.config.activation_dropout))

    def __call__(
        self,
        x: Float[Array, "B U D"],
        segments: Int[AnyArray, "B U"] | None,
        lengths: Int[AnyArray, " B"] | None,
        key: PRNGKeyArray | None,
        maps: bool,
        source: Float[Array, "B T D"],
        source_segments: Int[AnyArray, "B T"] | None = None,
    ) -> tuple[Float[Array, "B U D"], tuple[Float32[Array, "B A U U"], Float32[Array, "B A U T"]] | None]:
        """Return the outputs and, with `maps`, the attention to the target and to the source; no key: no dropout.

        A piece sees the pieces of its segment up to itself, and the pieces of the source that have its segment. If only
        the source has segments, its segment 0 is padding and all others are seen.
        """
        keys = (None,) * 5 if key is None else jax.random.split(key, 5)
        b, u, _ = x.shape
        sees = visible(u, segments, lengths, causal=True)
        assert sees is not None
        sees = jnp.broadcast_to(sees, (b, u, u))
        x, to_target = self.attention(x, self.attention.remember(x), sees, keys[0], keys[1])
        sees_source = None if source_segments is None else source_of(segments, jnp.asarray(source_segments), u)
        x, to_source = self.cross_attention(x, self.cross_attention.remember(source), sees_source, keys[2], keys[3])
        return self.feed_forward(x, keys[4]), (to_target, to_source) if maps else None

    def begin(self, source: Float[Array, "B T D"], slots: int) -> tuple[KeysValues, KeysValues]:
        """Return empty slots for the target, and the keys and values of the source."""
        empty = self.attention.remember(jnp.zeros((source.shape[0], slots, source.shape[-1]), source.dtype))
        return jax.tree.map(jnp.zeros_like, empty), self.cross_attention.remember(source)

    def step(
        self,
        x: Float[Array, "B U D"],
        target: KeysValues,
        source: KeysValues,
        at: Int[Array, ""] | int,
        sees: Bool[Array, "B U S"],
        sees_source: Bool[Array, "B U T"],
    ) -> tuple[Float[Array, "B U D"], KeysValues]:
        """Return the outputs of pieces that are written into the slots from `at` on, and the slots after that.

        `sees` and `sees_source` mark the slots and the pieces of the source that each piece sees.
        """
        added = self.attention.remember(x)
        target = jax.tree.map(lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, at, 1), target, added)
        x, _ = self.attention(x, target, sees)
        x, _ = self.cross_attention(x, source, sees_source)
        return self.feed_forward(x, None), target


def source_of(
    segments: Int[AnyArray, "B U"] | None, source_segments: Int[Array, "B T"], size: int
) -> Bool[Array, "B {size} T"]:
    """Return which pieces of the source each of `size` pieces of the target sees."""
    if segments is None:
        rows, width = source_segments.shape
        return jnp.broadcast_to((source_segments > 0)[:, None, :], (rows, size, width))
    return jnp.asarray(segments)[:, :, None] == source_segments[:, None, :]
