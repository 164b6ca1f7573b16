"""MPNet: Song et al. 2020, https://arxiv.org/abs/2004.09297.

A RoBERTa without types, whose attention has a bias for each head and bucket of distances, shared by all layers. The
original is https://github.com/microsoft/MPNet. Here it is pretrained on masked words, not on permuted ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head, encoder_depth
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.mpnet.formats import FILE, FIRST, FORMATS
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.families.piece_embeddings import Embeddings, count_pieces
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.nn import dropout, truncated_normal
from bert_elmo_jax.nn.attention import check_bias
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.relative_bias import BUCKETS, relative_bias
from bert_elmo_jax.nn.transformer import Layer, MaskedLM


@dataclass(frozen=True)
class MPNetConfig(PieceConfig):
    """The sizes of an MPNet; `relative_buckets` is the number of rows of its table of distances.

    `max_positions` is the longest text: the `max_position_embeddings` of released models, 514, count two more.

    >>> MPNetConfig.preset("base").to_huggingface()["max_position_embeddings"]
    514
    """

    vocab_size: int = 30527
    pad_id: int = 1
    norm_eps: float = placed(1e-5, after="activation")
    relative_buckets: int = BUCKETS

    FILE: ClassVar[ConfigFile] = FILE
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {"base": {}}

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        check_bias(self.attention)
        if self.relative_buckets < BUCKETS:
            raise ValueError(f"relative_buckets is {self.relative_buckets}; distances have {BUCKETS} buckets or more")


class MPNet(PieceModule):
    """The encoder; see `PieceModule`. Without `positions`, pieces other than `pad_id` are counted from 0."""

    config: MPNetConfig

    def count_positions(self, tokens: Any) -> Any:
        """Return the positions of rows, which may be padded on the left."""
        return count_pieces(tokens, self.config.pad_id)

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of word and position embeddings, normalised."""
        x = Embeddings(self.config, first=FIRST, name="embeddings")(tokens, None, positions)
        return dropout(x, self.config.dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers, which share the bias of distances."""
        c = self.config
        table = parameter(
            self, "relative_bias", truncated_normal(c.initializer_range), (c.relative_buckets, c.num_heads)
        )
        bias = relative_bias(table, positions.shape[1], self.config.max_positions)
        return [LayerCall(Layer(c, parent=None), (None, None, bias))] * c.num_layers


HEADS = {"mlm": Head(lambda config: MaskedLM(config, "gelu"))}  # even if the layers have another activation
FAMILY = Family(
    name="mpnet", called="an MPNet", config=MPNetConfig, module=MPNet, inputs=Pieces(vocab_size=30_527), heads=HEADS,
    objectives=piece_objectives("mpnet", "sentences", "documents"), formats=FORMATS, presets=MPNetConfig.PRESETS,
    depth_of=lambda path: 0 if path == "relative_bias" else encoder_depth(path), sharding=TRANSFORMER_SHARDING,
)  # fmt: skip
