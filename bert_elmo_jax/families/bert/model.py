"""BERT and its pretraining heads: Devlin et al. 2018, https://arxiv.org/abs/1810.04805.

The original is https://github.com/google-research/bert. The encoder has embeddings, `num_layers` times attention and
feed-forward (each followed by dropout, the residual and a layer norm), and the pooler. The parameter tree has one
entry per layer, also for `scan`.

The fields `norm`, `feed_forward`, `position` and `layer_bias` of the configuration choose what later papers changed; a
model with pre-norm normalises the outputs of its last layer.
"""

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.family import Output
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.nn import Dense, LayerNorm, dropout, rotary_angles
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import layer_numbers
from bert_elmo_jax.nn.transformer import Layer, MaskedLM, Pooler, at_positions, run_layers

# `MaskedLM` and `at_positions` are shared with other families.
__all__ = ["Bert", "MaskedLM", "NextSentence", "at_positions"]


def make_layer(config: BertConfig) -> nn.Module:
    """Return the unbound module of a layer: the original's, or one with the changes of later encoders."""
    if config.is_original:
        return Layer(config, parent=None)
    from bert_elmo_jax.nn.modern_layer import ModernLayer

    return ModernLayer(config, parent=None)


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
        neither, every token is real. `layers` is "all" or layer numbers (0 is the embeddings, -1 the last; with
        pre-norm, the last is the only one that is normalised). The pooled vector is taken at the row's first token, or
        at `nsp_positions`.
        """
        c = self.config
        wanted = layer_numbers(layers, c.num_layers)
        # One key for the embeddings and one per layer, for every way to run the layers.
        keys = None if deterministic else jax.random.split(self.make_rng("dropout"), c.num_layers + 1)

        rotary = c.position == "rotary"
        x = Embeddings(c, c.type_vocab_size, learned=not rotary, name="embeddings")(tokens, types, positions)
        x = dropout(x, c.dropout, None if keys is None else keys[0])

        if rotary and positions is None:
            positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None, :], tokens.shape)
        x, hidden, maps = run_layers(
            self, make_layer(c), x, segments, lengths,
            None if keys is None else keys[1:], wanted=wanted, maps=attentions,
            angles=rotary_angles(positions, c.head_size, c.rotary_theta) if rotary and positions is not None else None,
        )  # fmt: skip
        if c.norm == "pre":
            x = LayerNorm(c.norm_eps, c.layer_bias, name="norm")(x)
            if hidden is not None:
                hidden = jnp.stack([x if n == c.num_layers else hidden[i] for i, n in enumerate(wanted)])
        pooled = Pooler(c, name="pooler")(x, nsp_positions) if self.add_pooler else None
        return Output(x, hidden, maps, pooled)


class NextSentence(nn.Module):
    """Predict whether the second segment follows the first (class 0) or is a random one (class 1)."""

    config: BertConfig

    @nn.compact
    def __call__(self, pooled: Float[Array, "*B D"]) -> Float32[Array, "*B 2"]:
        """Return the two logits of each pooled vector."""
        dense = Dense(2, self.config.initializer_range)
        nn.share_scope(self, dense)
        return dense(pooled)
