"""ModernBERT and its pretraining head: Warner et al. 2024, https://arxiv.org/abs/2412.13663.

The original is https://github.com/AnswerDotAI/ModernBERT. Differences from BERT: positions rotate queries and keys,
most layers see only a window, feed-forward layers are gated, norms come before attention and feed-forward (the first
layer's attention reads the normalised embeddings), and there are no biases unless the configuration has them.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule, PooledRows, first_or_mean
from bert_elmo_jax.nn import Dense, LayerNorm, activation, dropout, rotary_angles
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.transformer import Layer, LayerParts, at_positions


class PredictionHead(nn.Module):
    """Dense, activation, layer norm: below the decoder of words, and as the pooler below the classifiers."""

    config: ModernBertConfig

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Return the outputs of each vector."""
        c = self.config
        dense = Dense(c.hidden_size, c.output_range, c.dtype, c.head_bias, c.initializer_cut, name="dense")
        return LayerNorm(c.norm_eps, c.norm_bias, name="norm")(activation(c.head_activation)(dense(x)))


class ModernBert(PieceModule):
    """The encoder; see `PieceModule`. It has no types, and its positions have no embeddings.

    The pooled vector comes from the row's first piece or from the mean of its first sequence, as the configuration
    says.
    """

    config: ModernBertConfig

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the word embeddings, normalised."""
        c = self.config
        words = Embeddings(c, learned=False, norm_bias=c.norm_bias, cut=c.initializer_cut, name="embeddings")
        return dropout(words(tokens, None, positions), c.embedding_dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers; layers of one kind are equal, except for the first layer, whose attention has no norm."""
        c = self.config
        angles = {kind: rotary_angles(positions, c.head_size, c.theta(kind)) for kind in sorted(set(c.kinds))}

        def make_call(kind: str, first: bool) -> LayerCall:
            parts = LayerParts(
                norm_first=True, first_norm=not first, gated=True, attention_bias=c.attention_bias,
                feed_forward_bias=c.feed_forward_bias, norm_bias=c.norm_bias, window=c.window(kind),
                attention_rate=c.attention_dropout, hidden_rate=c.dropout, output_rate=0.0,
                output_stddev=c.output_range, cut=c.initializer_cut,
            )  # fmt: skip
            return LayerCall(Layer(c, parts, parent=None), (angles[kind],))

        later = {kind: make_call(kind, False) for kind in set(c.kinds[1:])}
        return [make_call(c.kinds[0], True), *(later[kind] for kind in c.kinds[1:])]

    def last_norm(self) -> nn.Module:
        """Return the norm after the last layer."""
        return LayerNorm(self.config.norm_eps, self.config.norm_bias, name="norm")

    def pool(self, x: Float[Array, "B T D"], rows: PooledRows) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return the outputs of the prediction head."""
        mean = self.config.pooling == "mean"
        vectors = x if rows.every else first_or_mean(x, rows, mean)
        pooled = PredictionHead(self.config, name="pooler")(vectors)
        return pooled[:, 0] if rows.firsts is None and not rows.every else pooled


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
        return logits + parameter(self, "bias", nn.initializers.zeros, (words.shape[0],))[None, None, :]
