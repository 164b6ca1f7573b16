"""ELECTRA: Clark et al. 2020, https://arxiv.org/abs/2003.10555.

The encoder is BERT's, with embeddings of their own width. A discriminator tells replaced pieces from original ones; a
generator, a narrower encoder, fills the masked places with replacements. The first layer of the released classifiers,
with a gelu, is the pooler here.
"""

from typing import Any

from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.nn import Dense, dropout
from bert_elmo_jax.nn.transformer import MaskedLM


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


def masked_lm(config: ElectraConfig) -> MaskedLM:
    """Return the generator's head, which always has the exact gelu."""
    return MaskedLM(config, "gelu")
