"""ModernBERT and its pretraining head: Warner et al. 2024, https://arxiv.org/abs/2412.13663.

The original is https://github.com/AnswerDotAI/ModernBERT. Differences from BERT: positions rotate queries and keys,
most layers see only a window, feed-forward layers are gated, norms come before attention and feed-forward (the first
layer's attention reads the normalised embeddings), and there are no biases unless the configuration has them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.nn import (
    Dense,
    GatedFeedForward,
    LayerNorm,
    SelfAttention,
    activation,
    dropout,
    embed,
    rotary_angles,
    truncated_normal,
)
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.rotary import Angles

Params = Mapping[str, Any]


class Embeddings(nn.Module):
    """Word embeddings, normalised; there are no types and no position embeddings."""

    config: ModernBertConfig

    @nn.compact
    def __call__(self, tokens: Int[AnyArray, "B T"]) -> Float[Array, "B T D"]:
        """Return the vectors of ids; an id outside the table becomes NaN."""
        c = self.config
        init = truncated_normal(c.initializer_range, c.initializer_cut)
        x = embed(parameter(self, "word", init, (c.vocab_size, c.hidden_size)), tokens)
        return LayerNorm(c.norm_eps, c.norm_bias, name="norm")(x).astype(c.dtype)


class Attention(nn.Module):
    """Layer norm (but in the first layer), self-attention with rotated queries and keys, dropout, residual."""

    config: ModernBertConfig
    kind: str  # "g": global, "l": local
    first: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        angles: Angles,
        segments: AnyArray | None,
        lengths: AnyArray | None,
        maps_key: PRNGKeyArray | None,
        output_key: PRNGKeyArray | None,
        maps: bool,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested."""
        c = self.config
        attend = SelfAttention(
            c.num_heads, c.implementation, False, c.attention_dropout, c.initializer_range, c.dtype,
            c.window(self.kind), c.attention_bias, c.output_range, c.initializer_cut,
        )  # fmt: skip
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        read = x if self.first else LayerNorm(c.norm_eps, c.norm_bias, name="norm")(x)
        y, attentions = attend(read, segments, lengths=lengths, angles=angles, dropout_key=maps_key, maps=maps)
        return x + dropout(y, c.attention_dropout, output_key), attentions


class FeedForward(nn.Module):
    """Layer norm, gated feed-forward layer, residual."""

    config: ModernBertConfig

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None) -> Float[Array, "B T D"]:
        """Return the outputs of each piece."""
        c = self.config
        gated = GatedFeedForward(
            c.feed_forward_size, c.activation, c.dropout, c.initializer_range, c.dtype, c.feed_forward_bias,
            c.output_range, c.initializer_cut,
        )  # fmt: skip
        nn.share_scope(self, gated)
        return x + gated(LayerNorm(c.norm_eps, c.norm_bias, name="norm")(x), key)


class Layer(nn.Module):
    """One layer of the encoder."""

    config: ModernBertConfig
    kind: str
    first: bool = False

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        angles: Angles,
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; without a key there is no dropout."""
        keys = (None, None, None) if key is None else jax.random.split(key, 3)
        attend = Attention(self.config, self.kind, self.first, name="attention")
        x, attentions = attend(x, angles, segments, lengths, keys[0], keys[1], maps)
        return FeedForward(self.config, name="feed_forward")(x, keys[2]), attentions


class PredictionHead(nn.Module):
    """Dense, activation, layer norm: below the decoder of words, and as the pooler below the classifiers."""

    config: ModernBertConfig

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Return the outputs of each vector."""
        c = self.config
        dense = Dense(c.hidden_size, c.output_range, c.dtype, c.head_bias, c.initializer_cut, name="dense")
        return LayerNorm(c.norm_eps, c.norm_bias, name="norm")(activation(c.head_activation)(dense(x)))


class ModernBert(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`."""

    config: ModernBertConfig
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
        pool_pieces: bool = False,
        deterministic: bool = True,
        layers: str | Sequence[int] | None = None,
        attentions: bool = False,
    ) -> Output:
        """Encode a batch.

        `types` change nothing. `positions` count from 0 along the row (packed rows must give theirs). `segments` are 0
        for padding and 1, 2, … for the sequences of a row; rows of one sequence can give `lengths` instead; with
        neither, every piece is real. `layers` is "all" or layer numbers (0 is the embeddings, -1 the last, the only one
        after the final norm). The pooled vector comes from the row's first piece or from the mean of its first
        sequence, as the configuration says. There is one for each of `nsp_positions` if they are given, and one for
        each piece with `pool_pieces`.
        """
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        # One key for the embeddings and one per layer, for every way to run the layers.
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)
        if positions is None:
            if tokens.shape[1] > c.max_positions:
                raise ValueError(too_long(tokens.shape[1], c.max_positions))
            positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None, :], tokens.shape)

        x = Embeddings(c, name="embeddings")(tokens)
        x = embeddings = dropout(x, c.embedding_dropout, None if keys is None else keys[0])
        angles = {kind: rotary_angles(positions, c.head_size, c.theta(kind)) for kind in sorted(set(c.kinds))}

        def make_step(kind: str, first: bool) -> Step:
            layer = Layer(c, kind, first, parent=None)

            def step(x: Array, of_layer: tuple[Params, PRNGKeyArray | None]) -> tuple[Array, Any]:
                x, maps = layer.apply(
                    {"params": of_layer[0]}, x, angles[kind], segments, lengths, of_layer[1], attentions
                )
                return x, (x if wanted else None, maps)

            if self.is_initializing():
                return jax.jit(step)  # traced once for all layers of a kind
            return jax.checkpoint(step, prevent_cse=not c.scan) if c.remat else step

        # Layers are functions of their parameters, so loop, remat and scan run the same code with the same keys.
        steps = {(c.kinds[i], i == 0): make_step(c.kinds[i], i == 0) for i in range(c.num_layers)}
        params = [self._layer_params(i, x, angles[c.kinds[i]]) for i in range(c.num_layers)]
        inputs = [(params[i], None if keys is None else keys[i + 1]) for i in range(c.num_layers)]
        run = run_in_periods if c.scan else run_one_by_one
        x, (hidden, maps) = run([steps[c.kinds[i], i == 0] for i in range(c.num_layers)], x, inputs)
        x = LayerNorm(c.norm_eps, c.norm_bias, name="norm")(x)
        if wanted:
            hidden = jnp.concatenate([embeddings[None], hidden[:-1], x[None]])[np.array(wanted)]

        pooled = None
        if self.add_pooler:
            read = x if pool_pieces else pool(x, nsp_positions, segments, lengths, c.pooling == "mean")
            pooled = PredictionHead(c, name="pooler")(read)
            pooled = pooled[:, 0] if nsp_positions is None and not pool_pieces else pooled
        return Output(x, hidden, maps, pooled)

    def _layer_params(self, number: int, x: Array, angles: Angles) -> Any:
        """Return the parameters of a layer; `self.param` alone would trace their initialisation in every call."""
        name = f"layer_{number}"
        if self.has_variable("params", name):
            return self.get_variable("params", name)
        layer = Layer(self.config, self.config.kinds[number], number == 0, parent=None)
        return self.param(name, lambda key: layer.init(key, x, angles)["params"])


Step = Callable[[Array, Any], tuple[Array, Any]]


def run_one_by_one(steps: Sequence[Step], x: Array, inputs: Sequence[Any]) -> tuple[Array, Any]:
    """Return the last outputs of layers, and what each kept, stacked."""
    kept: list[Any] = []
    for step, of_layer in zip(steps, inputs, strict=True):
        x, of_step = step(x, of_layer)
        kept.append(of_step)
    return x, stack(kept)


def run_in_periods(steps: Sequence[Step], x: Array, inputs: Sequence[Any]) -> tuple[Array, Any]:
    """Return the same as `run_one_by_one`, but compile the layers after the first only once per period.

    The first layer has other parameters than the rest. Then comes a loop over whole periods of equal steps; the layers
    that are left over run one by one.
    """
    size = find_period(steps[1:])
    count = (len(steps) - 1) // size if size else 0
    if count < 2:
        return run_one_by_one(steps, x, inputs)
    x, first = run_one_by_one(steps[:1], x, inputs[:1])

    def period(x: Array, of_period: Any) -> tuple[Array, Any]:
        return run_one_by_one(steps[1 : 1 + size], x, of_period)

    # The k-th layers of all periods, stacked.
    end = 1 + count * size
    x, looped = jax.lax.scan(period, x, [stack(inputs[1 + k : end : size]) for k in range(size)])
    kept = [first, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), looped)]
    if end < len(steps):
        x, rest = run_one_by_one(steps[end:], x, inputs[end:])
        kept.append(rest)
    return x, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *kept)


def find_period(steps: Sequence[Any]) -> int:
    """Return after how many entries a list repeats itself; its length if it does not.

    >>> find_period("llgllgll"), find_period("gg"), find_period("lg"), find_period("")
    (3, 1, 2, 0)
    """
    sizes = range(1, len(steps) + 1)
    return next((size for size in sizes if all(a == b for a, b in zip(steps, steps[size:]))), 0)


def stack(trees: Sequence[Any]) -> Any:
    """Return trees of the same structure as one tree with a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def pool(
    x: Float[Array, "B T D"],
    firsts: Int[AnyArray, "B S"] | None,
    segments: Int[AnyArray, "B T"] | None,
    lengths: Int[AnyArray, " B"] | None,
    mean: bool,
) -> Float[Array, "B S D"]:
    """Return the vectors at `firsts` (by default the first of a row), or the means of the sequences that begin there.

    >>> x, segments = jnp.array([[[1.0], [3.0], [5.0], [9.0]]]), jnp.array([[1, 1, 2, 0]])
    >>> pool(x, jnp.array([[0, 2]]), segments, None, mean=True).ravel().tolist()
    [2.0, 5.0]
    """
    b, t, _ = x.shape
    firsts = jnp.zeros((b, 1), jnp.int32) if firsts is None else jnp.asarray(firsts)
    if not mean:
        return at_positions(x, firsts)
    if segments is None:
        lengths = jnp.full((b,), t) if lengths is None else jnp.asarray(lengths)
        segments = (jnp.arange(t)[None, :] < lengths[:, None]).astype(jnp.int32)
    segments = jnp.asarray(segments)
    inside = segments[:, None, :] == jnp.take_along_axis(segments, firsts, axis=1)[:, :, None]
    # A row of padding has the mean of its padding, which is finite and not read.
    shares = inside.astype(jnp.float32)
    shares = shares / jnp.broadcast_to(shares.sum(axis=2, keepdims=True), shares.shape)
    return jnp.einsum("bst,btd->bsd", shares, x.astype(jnp.float32)).astype(x.dtype)


def at_positions(x: Float[Array, "B T D"], positions: Int[AnyArray, "B K"]) -> Float[Array, "B K D"]:
    """Return the vectors at some positions of each row."""
    return jnp.take_along_axis(x, jnp.asarray(positions)[:, :, None], axis=1, mode="fill", fill_value=jnp.nan)


class MaskedLM(nn.Module):
    """Predict the pieces at some positions: the prediction head, then the transposed word embeddings."""

    config: ModernBertConfig

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V D"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K V"] | Float32[Array, "B T V"]:
        """Return the logits at `positions [B, K]`, or everywhere."""
        c = self.config
        head = PredictionHead(c)
        nn.share_scope(self, head)
        x = head(hidden if positions is None else at_positions(hidden, positions))
        logits = word_logits(x, words)
        if not c.decoder_bias:
            return logits
        return logits + parameter(self, "bias", nn.initializers.zeros, (c.vocab_size,))[None, None, :]
