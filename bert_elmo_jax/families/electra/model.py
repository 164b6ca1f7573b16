"""ELECTRA: Clark et al. 2020, https://arxiv.org/abs/2003.10555.

The encoder is BERT's, with embeddings of their own width. A discriminator tells replaced pieces from original ones; a
generator, a narrower encoder, fills the masked places with replacements. The first layer of the released classifiers,
with a gelu, is the pooler here.
"""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.nn import Dense, activation, dropout
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.transformer import MaskedLM, at_positions


class Electra(PieceModule):
    """The encoder; see `PieceModule`. Layer 0 is the projected embeddings."""

    config: ElectraConfig
    POOLER = "gelu"

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of three embeddings, normalised, and projected if their width is not the layers'."""
        c = self.config
        x = Embeddings(c, c.type_vocab_size, c.embedding_size, name="embeddings")(tokens, types, positions)
        x = dropout(x, c.dropout, key)
        if c.embedding_size == c.hidden_size:
            return x
        return Dense(c.hidden_size, c.initializer_range, c.dtype, name="project")(x)


class Replaced(nn.Module):
    """The discriminator's head: a logit per piece, positive for a replaced one."""

    config: ElectraConfig

    @nn.compact
    def __call__(
        self,
        hidden: Float[Array, "B T D"],
        words: Float[AnyArray, "V E"],
        positions: Int[AnyArray, "B K"] | None = None,
    ) -> Float32[Array, "B K"] | Float32[Array, "B T"]:
        """Return the logits at `positions [B, K]`, or everywhere; `words` is not read."""
        c = self.config
        x = hidden if positions is None else at_positions(hidden, positions)
        x = activation(c.activation)(Dense(c.hidden_size, c.initializer_range, c.dtype, name="dense")(x))
        return Dense(1, c.initializer_range, name="out")(x)[..., 0]


class Generator(nn.Module):
    """Makes the generator's parameters: `encoder`, without embeddings, and `mlm`, its head.

    They are kept like a head of the discriminator, so that a run stores both networks. The generator reads the
    discriminator's embeddings. `take_generator` puts the two together.
    """

    config: ElectraConfig  # the discriminator's

    @nn.compact
    def __call__(self, hidden: Float[Array, "B T D"], words: Float[AnyArray, "V E"]) -> None:
        """Make the parameters; of `hidden` only the shape counts."""
        c, (b, t, _) = self.config.generator, hidden.shape

        def encoder(key: Any) -> Any:
            params = Electra(c, add_pooler=False).init(key, jnp.zeros((b, t), jnp.int32))["params"]
            return {name: part for name, part in params.items() if name != "embeddings"}

        self.param("encoder", encoder)
        self.param("mlm", lambda key: masked_lm(c).init(key, jnp.zeros((b, t, c.hidden_size)), words)["params"])


def masked_lm(config: ElectraConfig) -> MaskedLM:
    """Return the generator's head, which always has the exact gelu."""
    return MaskedLM(config, "gelu")
