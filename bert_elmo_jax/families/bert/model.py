"""BERT: Devlin et al. 2018, https://arxiv.org/abs/1810.04805.

The original is https://github.com/google-research/bert. The encoder has embeddings, `num_layers` times attention and
feed-forward (each followed by dropout, the residual and a layer norm), and the pooler. The parameter tree has one
entry per layer, also for `scan`.

The fields `norm`, `feed_forward`, `position` and `layer_bias` of the configuration choose what later papers changed; a
model with pre-norm normalises the outputs of its last layer.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.nn import LayerNorm, dropout, rotary_angles
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.transformer import Layer, LayerParts


class Bert(PieceModule):
    """The encoder; see `PieceModule`."""

    config: BertConfig

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of three embeddings, normalised."""
        c = self.config
        learned = c.position == "learned"
        x = Embeddings(c, c.type_vocab_size, learned=learned, name="embeddings")(tokens, types, positions)
        return dropout(x, c.dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers, with angles for rotary positions."""
        c = self.config
        parts = LayerParts(
            norm_first=c.norm == "pre", gated=c.feed_forward == "gated", attention_bias=c.layer_bias,
            feed_forward_bias=c.layer_bias, norm_bias=c.layer_bias,
        )  # fmt: skip
        angles = rotary_angles(positions, c.head_size, c.rotary_theta) if c.position == "rotary" else None
        return [LayerCall(Layer(c, parts, parent=None), (angles,))] * c.num_layers

    def last_norm(self) -> nn.Module | None:
        """Return the norm of an encoder whose layers begin with norms."""
        c = self.config
        return LayerNorm(c.norm_eps, c.layer_bias, name="norm") if c.norm == "pre" else None
