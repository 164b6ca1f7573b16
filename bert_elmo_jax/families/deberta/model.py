"""DeBERTa: He et al. 2021, https://arxiv.org/abs/2006.03654, and version 3, https://arxiv.org/abs/2111.09543.

The original is https://github.com/microsoft/DeBERTa. Differences from BERT: attention scores have terms with relative
positions, whose vectors are shared by all layers, and absolute positions are optional; version 2 adds a convolution
after the first layer. The first layer of the released classifiers, with a gelu, is the pooler here.
"""

import math
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float32, PRNGKeyArray

from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule, PooledRows
from bert_elmo_jax.nn import Dense, LayerNorm, activation, dropout, truncated_normal
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import attention_maps, get_attention
from bert_elmo_jax.nn.disentangled import distance_vectors, position_terms
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.transformer import FeedForward, Pooler

Keys = Sequence[PRNGKeyArray | None]


class RelativeTable(nn.Module):
    """The vectors of relative positions, normalised once for all layers."""

    config: DebertaConfig

    @nn.compact
    def __call__(self) -> Float[Array, "N D"]:
        """Return the table."""
        c = self.config
        init = truncated_normal(c.initializer_range)
        table = jnp.asarray(parameter(self, "table", init, (c.relative_rows, c.hidden_size)))
        return LayerNorm(c.norm_eps, name="norm")(table) if c.norm_relative else table


class DisentangledAttention(nn.Module):
    """Self-attention whose scores know distances, dropout, residual and layer norm."""

    config: DebertaConfig

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        table: Float[Array, "N D"] | None,
        segments: AnyArray | None,
        lengths: AnyArray | None,
        keys: Keys,
        maps: bool,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested; `keys` are of the maps, the output and the table."""
        c, (b, t, d) = self.config, x.shape
        second = c.model_type != "deberta"  # in version 1, keys have no bias

        def dense(name: str, use_bias: bool = True) -> Dense:
            return Dense(d, c.initializer_range, c.dtype, use_bias, name=name)

        def split(vectors: Float[Array, "*B D"]) -> Float[Array, "*B A H"]:
            return vectors.reshape(*vectors.shape[:-1], c.num_heads, c.head_size)

        to_query, to_key = dense("query"), dense("key", second)
        query, key, value = split(to_query(x)), split(to_key(x)), split(dense("value")(x))
        rules: dict[str, Any] = {"lengths": lengths}
        if table is not None:
            dropped = dropout(table, c.dropout, keys[2])
            vectors = distance_vectors(dropped, t, c.position_buckets, c.largest_distance, c.max_positions)
            as_key = to_key if c.share_att_key or "c2p" not in c.terms else dense("position_key", second)
            as_query = to_query if c.share_att_key or "p2c" not in c.terms else dense("position_query")
            bias = position_terms(
                query,
                key,
                split(as_key(vectors)) if "c2p" in c.terms else None,
                split(as_query(vectors)) if "p2c" in c.terms else None,
            )
            rules["bias"] = bias / math.sqrt(c.head_size * (1 + len(c.terms)))
            query = query * jnp.asarray(1 / math.sqrt(1 + len(c.terms)), query.dtype)
        out = get_attention(c.attention)(
            query, key, value, segments, **rules, dropout=c.attention_dropout, dropout_key=keys[0]
        )
        out = dropout(dense("output")(out.reshape(b, t, d)), c.dropout, keys[1])
        normal = LayerNorm(c.norm_eps, name="norm")(x + out)
        return normal, attention_maps(query, key, segments, **rules) if maps else None


class Convolution(nn.Module):
    """A convolution over the pieces of a sequence, added to the outputs of the first layer, and normalised."""

    config: DebertaConfig

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        outputs: Float[Array, "B T D"],
        segments: AnyArray | None,
        lengths: AnyArray | None,
        key: PRNGKeyArray | None,
    ) -> Float[Array, "B T D"]:
        """Return the outputs; pieces of other sequences and padding count as zeros."""
        c, (b, t, d) = self.config, x.shape
        size, groups = c.conv_kernel_size, c.conv_groups
        kernel = parameter(self, "kernel", truncated_normal(c.initializer_range), (size, d // groups, d))
        bias = parameter(self, "bias", nn.initializers.zeros, (d,))
        if segments is None:
            ends = jnp.full((b,), t) if lengths is None else jnp.asarray(lengths)
            segments = (jnp.arange(t)[None, :] < ends[:, None]).astype(jnp.int32)
        segments = jnp.asarray(segments)
        reach = size // 2
        padded = jnp.pad(x, ((0, 0), (reach, reach), (0, 0)))
        near = [lax.slice_in_dim(padded, n, n + t, axis=1) for n in range(size)]
        beyond = jnp.pad(segments, ((0, 0), (reach, reach)), constant_values=-1)
        inside = [lax.slice_in_dim(beyond, n, n + t, axis=1) == segments for n in range(size)]
        near = [jnp.where(same[..., None], part, 0) for same, part in zip(inside, near)]
        stacked = jnp.stack(near, axis=2).reshape(b, t, size, groups, d // groups)
        kernel = jnp.asarray(kernel).astype(x.dtype).reshape(size, d // groups, groups, d // groups)
        y = jnp.einsum("btkgi,kigo->btgo", stacked, kernel).reshape(b, t, d)
        y = y + jnp.broadcast_to(jnp.asarray(bias).astype(y.dtype), y.shape)
        y = activation(c.conv_activation)(dropout(y, c.dropout, key))
        return LayerNorm(c.norm_eps, name="norm")(outputs + y)


class DebertaLayer(nn.Module):
    """One layer, with the convolution if it is the first of a model that has one."""

    config: DebertaConfig
    convolves: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
        table: Float[Array, "N D"] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; without a key there is no dropout."""
        keys: Keys = [None] * 5 if key is None else list(jax.random.split(key, 5))
        attend = DisentangledAttention(self.config, name="attention")
        y, attentions = attend(x, table, segments, lengths, keys[:3], maps)
        y = FeedForward(self.config, name="feed_forward")(y, keys[3])
        if self.convolves:
            y = Convolution(self.config, name="convolution")(x, y, segments, lengths, keys[4])
        return y, attentions


class Deberta(PieceModule):
    """The encoder; see `PieceModule`."""

    config: DebertaConfig

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of the embeddings that the model has, projected to the width of the layers, normalised."""
        c = self.config
        embeddings = Embeddings(
            c, c.type_vocab_size, c.word_size, learned=c.absolute_positions, width=c.hidden_size,
            difference=c.embedding_difference, name="embeddings",
        )  # fmt: skip
        return dropout(embeddings(tokens, types, positions), c.dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers, which share a table of relative positions."""
        c = self.config
        table = RelativeTable(c, name="relative")() if c.terms else None
        layer = LayerCall(DebertaLayer(c, parent=None), (table,))
        if not c.conv_kernel_size:
            return [layer] * c.num_layers
        return [LayerCall(DebertaLayer(c, True, parent=None), (table,)), *[layer] * (c.num_layers - 1)]

    def pool(self, x: Float[Array, "B T D"], rows: PooledRows) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return the first layer of a classifier for the first piece of each row."""
        return Pooler(self.config, self.config.pooler_activation, name="pooler")(x, rows.firsts, rows.every)
