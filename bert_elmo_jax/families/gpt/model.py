"""GPT-1 and GPT-2 (Radford et al. 2018, 2019), with their head of next pieces.

The originals are https://github.com/openai/finetune-transformer-lm and https://github.com/openai/gpt-2. A piece sees
only itself and the pieces before it. In a GPT-1, layer norms come after the residuals, as in BERT. In a GPT-2 they come
before attention and feed-forward, with one more after the last layer.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule, PooledRows
from bert_elmo_jax.nn import LayerNorm, dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.transformer import Layer, LayerParts, at_positions

CUT = 4.0  # of the initialiser, in standard deviations: the papers draw from the whole normal distribution


class Gpt(PieceModule):
    """The encoder; see `PieceModule`. It has no types.

    Positions count from 0 along the row, also if the row is padded on the left. With `add_pooler`, `pooled` is the
    state of each row's last real piece, the only one that has seen the whole row, or of the last piece of the text at
    each of `nsp_positions`. This pooler has no parameters.
    """

    config: GptConfig
    add_pooler: bool = False

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of word and position embeddings; there is no norm."""
        c = self.config
        x = Embeddings(c, norm=False, cut=CUT, name="embeddings")(tokens, None, positions)
        return dropout(x, c.embedding_dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers."""
        c = self.config
        return [LayerCall(Layer(c, layer_parts(c), parent=None), (None,))] * c.num_layers

    def scales(self) -> Float[Array, " L"] | None:
        """Return the factors of the queries of each layer."""
        c = self.config
        return None if c.plain_scale else jnp.array([c.query_scale(i) for i in range(c.num_layers)], jnp.float32)

    def last_norm(self) -> nn.Module | None:
        """Return the norm of a GPT-2."""
        return LayerNorm(self.config.norm_eps, name="norm") if self.config.norm_first else None

    def pool(self, x: Float[Array, "B T D"], rows: PooledRows) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return the vectors of the last pieces."""
        places = last_pieces(rows.tokens, rows.segments, rows.lengths, rows.firsts)
        return at_positions(x, places) if rows.firsts is not None else at_positions(x, places)[:, 0]


def layer_parts(config: GptConfig) -> LayerParts:
    """Return the parts of a layer; GPT-2 initialises the kernels before residuals smaller, the deeper the model is."""
    depth = (2 * config.num_layers) ** 0.5 if config.norm_first else 1.0
    return LayerParts(norm_first=config.norm_first, output_stddev=config.initializer_range / depth, cut=CUT)


def last_pieces(
    tokens: Int[AnyArray, "B T"],
    segments: Int[AnyArray, "B T"] | None,
    lengths: Int[AnyArray, " B"] | None,
    inside: Int[AnyArray, "B S"] | None = None,
) -> Int[Array, "B S"]:
    """Return the place of each row's last real piece, or of the last piece of the text around each place of `inside`.

    >>> segments = jnp.array([[1, 1, 2, 2, 0], [0, 0, 1, 1, 1]])
    >>> last_pieces(jnp.ones((2, 5), jnp.int32), segments, None).tolist()
    [[3], [4]]
    >>> last_pieces(jnp.ones((2, 5), jnp.int32), segments, None, jnp.array([[0, 2], [2, 0]])).tolist()
    [[1, 3], [4, 1]]
    """
    places = jnp.arange(tokens.shape[1])[None, :]
    if segments is not None:
        texts = jnp.asarray(segments)
    elif lengths is not None:
        texts = (places < jnp.asarray(lengths)[:, None]).astype(jnp.int32)
    else:
        texts = jnp.ones(tokens.shape, jnp.int32)
    if inside is None:
        within = texts[:, None, :] > 0
    else:
        within = texts[:, None, :] == jnp.take_along_axis(texts, jnp.asarray(inside), axis=1)[:, :, None]
    return jnp.where(within, places[:, None, :], 0).max(axis=2)


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
