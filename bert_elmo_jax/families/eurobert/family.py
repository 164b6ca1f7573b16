"""EuroBERT: Boizard et al. 2025, https://arxiv.org/abs/2503.05500.

The layers of Llama 3 without causality: RMS norms first, rotary positions, SwiGLU, several queries for each key and
value, and a decoder of its own for masked pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from jax.sharding import PartitionSpec

from bert_elmo_jax.families.eurobert.formats import FILE, FORMATS
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule, PooledRows, first_or_mean
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.nn import rotary_angles
from bert_elmo_jax.nn.layer_loop import LayerCall
from bert_elmo_jax.nn.layers import RMSNorm
from bert_elmo_jax.nn.transformer import Layer, LayerParts, Pooler, UntiedLM

GROUPED = {"num_heads": 18, "key_value_heads": 6, "pad_id": 128_001}


@dataclass(frozen=True)
class EuroBertConfig(PieceConfig):
    """The sizes of a EuroBERT; `key_value_heads` divides `num_heads`.

    The pooled vector comes from the first piece ("bos"), from the mean of the states ("mean"), or is the mean of what
    the pooler makes of each state ("late"). `feed_forward_bias` is of the decoder of masked pieces, too.
    """

    vocab_size: int = 128_256
    max_positions: int = 8192
    activation: str = "silu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    key_value_heads: int | None = None  # None: num_heads
    norm_eps: float = 1e-5
    rotary_theta: float = 250_000.0
    attention_bias: bool = False
    feed_forward_bias: bool = False
    pooling: Literal["late", "mean", "bos"] = "late"

    FILE: ClassVar[ConfigFile] = FILE
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "210m": {"pad_id": 128_001},
        "610m": {"num_layers": 26, "hidden_size": 1152, "feed_forward_size": 4096, **GROUPED},
        "2.1b": {"num_layers": 32, "hidden_size": 2304, "feed_forward_size": 6144, **GROUPED},
    }

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        self.check_rotary()
        if not self.rotary_theta > 0:
            raise ValueError(f"rotary_theta is {self.rotary_theta}; it must be above 0")
        pairs = self.key_value_heads
        if pairs is not None and (pairs < 1 or self.num_heads % pairs):
            raise ValueError(f"key_value_heads is {self.key_value_heads}; it must divide num_heads, {self.num_heads}")


class EuroBert(PieceModule):
    """The encoder; see `PieceModule`. It has no types, and its positions have no embeddings."""

    config: EuroBertConfig
    POOLER = "gelu"

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the word embeddings."""
        return Embeddings(self.config, learned=False, norm=False, name="embeddings")(tokens, None, positions)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers, with angles for rotary positions."""
        c = self.config
        parts = LayerParts(
            norm_first=True, gated=True, rms_norm=True, attention_bias=c.attention_bias,
            feed_forward_bias=c.feed_forward_bias,
        )  # fmt: skip
        angles = rotary_angles(positions, c.head_size, c.rotary_theta)
        return [LayerCall(Layer(c, parts, parent=None), (angles,))] * c.num_layers

    def last_norm(self) -> RMSNorm:
        """Return the norm after the last layer."""
        return RMSNorm(self.config.norm_eps, name="norm")

    def pool(self, x: Any, rows: PooledRows) -> Any:
        """Return the outputs of the pooler; a mean of logits is the logits of the mean."""
        pooler, pooling = Pooler(self.config, self.POOLER, name="pooler"), self.config.pooling
        if rows.every:
            return pooler(x, None, True)
        states = pooler(x, None, True) if pooling == "late" else x
        pooled = first_or_mean(states, rows, pooling != "bos")
        pooled = pooled if pooling == "late" else pooler(pooled, None, True)
        return pooled[:, 0] if rows.firsts is None else pooled


HEADS = {"mlm": Head(lambda config: UntiedLM(config, config.feed_forward_bias))}
FAMILY = Family(
    name="eurobert", called="a EuroBERT", config=EuroBertConfig, module=EuroBert, inputs=Pieces(vocab_size=128_256),
    objectives=piece_objectives("eurobert", "documents", "sentences"), heads=HEADS, formats=FORMATS,
    sharding=(*TRANSFORMER_SHARDING, (r"mlm/kernel$", PartitionSpec("fsdp", "tensor"))), presets=EuroBertConfig.PRESETS,
)  # fmt: skip
