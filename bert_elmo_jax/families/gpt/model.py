"""GPT-1 and GPT-2 (Radford et al. 2018, 2019), with their head of next pieces.

The originals are https://github.com/openai/finetune-transformer-lm and https://github.com/openai/gpt-2. A piece sees
only itself and the pieces before it. In a GPT-1, layer norms come after the residuals, as in BERT. In a GPT-2 they come
before attention and feed-forward, with one more after the last layer.
"""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.arguments import too_long
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.nn import Dense, LayerNorm, SelfAttention, activation, dropout, embed, truncated_normal
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.transformer import at_positions, run_layers

CUT = 4.0  # of the initialiser, in standard deviations: the papers draw from the whole normal distribution


class Embeddings(nn.Module):
    """The sum of word and position embeddings; there is no norm."""

    config: GptConfig

    @nn.compact
    def __call__(self, tokens: Int[AnyArray, "B T"], positions: Int[AnyArray, "B T"]) -> Float[Array, "B T D"]:
        """Return the vectors of ids; an id outside its table becomes NaN."""
        c = self.config
        init = truncated_normal(c.initializer_range, CUT)
        word = parameter(self, "word", init, (c.vocab_size, c.hidden_size))
        position = parameter(self, "position", init, (c.max_positions, c.hidden_size))
        return (embed(word, tokens) + embed(position, positions)).astype(c.dtype)


class Attention(nn.Module):
    """Causal self-attention, dropout, residual, with a layer norm before or after it."""

    config: GptConfig

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None,
        lengths: AnyArray | None,
        maps_key: PRNGKeyArray | None,
        output_key: PRNGKeyArray | None,
        maps: bool,
        scale: Float[Array, ""] | None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs, and the attention maps if requested."""
        c = self.config
        attend = SelfAttention(
            c.num_heads, c.implementation, True, c.attention_dropout, c.initializer_range, c.dtype,
            output_stddev=_output_range(c), cut=CUT,
        )  # fmt: skip
        nn.share_scope(self, attend)  # query, key, value and output are siblings of the norm in the tree
        norm = LayerNorm(c.norm_eps, name="norm")
        read = norm(x) if c.norm_first else x
        y, attentions = attend(read, segments, lengths=lengths, dropout_key=maps_key, maps=maps, scale=scale)
        x = x + dropout(y, c.dropout, output_key)
        return x if c.norm_first else norm(x), attentions


class FeedForward(nn.Module):
    """Two dense layers, dropout, residual, with a layer norm before or after them."""

    config: GptConfig

    @nn.compact
    def __call__(self, x: Float[Array, "B T D"], key: PRNGKeyArray | None = None) -> Float[Array, "B T D"]:
        """Return the outputs of each piece."""
        c = self.config
        norm = LayerNorm(c.norm_eps, name="norm")
        y = Dense(c.feed_forward_size, c.initializer_range, c.dtype, cut=CUT, name="up")(norm(x) if c.norm_first else x)
        y = Dense(c.hidden_size, _output_range(c), c.dtype, cut=CUT, name="down")(activation(c.activation)(y))
        x = x + dropout(y, c.dropout, key)
        return x if c.norm_first else norm(x)


def _output_range(config: GptConfig) -> float:
    """Return the initial deviation of the kernels before a residual; GPT-2 makes it smaller the deeper the model is."""
    depth = (2 * config.num_layers) ** 0.5 if config.norm_first else 1.0
    return config.initializer_range / depth


class Layer(nn.Module):
    """One layer of the model."""

    config: GptConfig

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B T D"],
        segments: AnyArray | None = None,
        lengths: AnyArray | None = None,
        key: PRNGKeyArray | None = None,
        maps: bool = False,
        scale: Float[Array, ""] | None = None,
    ) -> tuple[Float[Array, "B T D"], Float32[Array, "B A T T"] | None]:
        """Return the outputs and attention maps; without a key there is no dropout. `scale` multiplies the queries."""
        keys = (None, None, None) if key is None else jax.random.split(key, 3)
        attend = Attention(self.config, name="attention")
        x, attentions = attend(x, segments, lengths, keys[0], keys[1], maps, scale)
        return FeedForward(self.config, name="feed_forward")(x, keys[2]), attentions


class Gpt(nn.Module):
    """The encoder. With `deterministic=False` it needs `rngs={"dropout": key}`.

    With `add_pooler`, `pooled` is the state of each row's last real piece, the only one that has seen the whole row, or
    of the pieces at `nsp_positions`. This pooler has no parameters.
    """

    config: GptConfig
    add_pooler: bool = False

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
        """Encode a batch; the arguments mean the same as in `Bert`, but `types` are ignored.

        Positions count from 0 along the row, also if the row is padded on the left. The last layer of a GPT-2 is taken
        after the final norm.
        """
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)
        if positions is None:
            if tokens.shape[1] > c.max_positions:
                raise ValueError(too_long(tokens.shape[1], c.max_positions))
            positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None, :], tokens.shape)
        x = Embeddings(c, name="embeddings")(tokens, positions)
        x = dropout(x, c.embedding_dropout, None if keys is None else keys[0])
        scales = None if c.plain_scale else jnp.array([c.query_scale(i) for i in range(c.num_layers)], jnp.float32)
        x, hidden, maps = run_layers(
            self, Layer(c, parent=None), x, segments, lengths, None if keys is None else keys[1:],
            wanted=wanted, maps=attentions, each=scales,
        )  # fmt: skip
        if c.norm_first:
            x = LayerNorm(c.norm_eps, name="norm")(x)
            last = [place for place, number in enumerate(wanted) if number == c.num_layers]
            if hidden is not None and last:
                hidden = hidden.at[np.array(last)].set(x[None])
        if not self.add_pooler:
            return Output(x, hidden, maps)
        if nsp_positions is not None:
            return Output(x, hidden, maps, at_positions(x, nsp_positions))
        return Output(x, hidden, maps, at_positions(x, last_pieces(tokens, segments, lengths))[:, 0])


def last_pieces(
    tokens: Int[AnyArray, "B T"], segments: Int[AnyArray, "B T"] | None, lengths: Int[AnyArray, " B"] | None
) -> Int[Array, "B 1"]:
    """Return the place of each row's last real piece.

    >>> last_pieces(jnp.ones((2, 4), jnp.int32), jnp.array([[1, 1, 0, 0], [0, 0, 1, 1]]), None).tolist()
    [[1], [3]]
    """
    places = jnp.arange(tokens.shape[1])[None, :]
    if segments is not None:
        real = jnp.asarray(segments) > 0
    elif lengths is not None:
        real = places < jnp.asarray(lengths)[:, None]
    else:
        real = jnp.ones(tokens.shape, bool)
    return jnp.where(real, jnp.broadcast_to(places, tokens.shape), 0).max(axis=1, keepdims=True)


class NextPiece(nn.Module):
    """Score the next piece by the transposed word embeddings; the head has no parameters of its own."""

    config: GptConfig

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V D"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K V"] | Float32[Array, "B T V"]:
        """Return the logits of the pieces after `positions [B, K]`, or after every piece."""
        x = hidden if positions is None else at_positions(hidden, positions)
        return word_logits(x, words)
