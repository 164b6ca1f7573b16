"""ModernBERT's configuration, and its conversion from and to Hugging Face's `config.json`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.modernbert.json_fields import FILE
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.nn import activation

# Warner et al. 2024. Ettin: Weller et al. 2025, https://arxiv.org/abs/2507.11412, with ModernBERT's tokenizer; mmBERT:
# Marone et al. 2025, https://arxiv.org/abs/2509.06888, with Gemma 2's.
_ETTIN = {"pad_id": 50_283, "local_theta": 160_000.0}
_MMBERT = {"num_layers": 22, "feed_forward_size": 1152, "vocab_size": 256_000, "pad_id": 0, "local_theta": 160_000.0}
_SIZES = {  # layers, width, heads, feed-forward
    "17m": (7, 256, 4, 384), "32m": (10, 384, 6, 576), "68m": (19, 512, 8, 768), "150m": (22, 768, 12, 1152),
    "400m": (28, 1024, 16, 2624), "1b": (28, 1792, 28, 3840),
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "base": {"num_layers": 22, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 1152, "pad_id": 50_283},
    "large": {"num_layers": 28, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 2624, "pad_id": 50_283},
    "mmbert-small": {"hidden_size": 384, "num_heads": 6, **_MMBERT},
    "mmbert-base": {"hidden_size": 768, "num_heads": 12, **_MMBERT},
}
_FIELDS = ("num_layers", "hidden_size", "num_heads", "feed_forward_size")
PRESETS |= {f"ettin-{name}": dict(zip(_FIELDS, sizes)) | _ETTIN for name, sizes in _SIZES.items()}
PRESETS = {name: {**sizes, "pooling": "mean"} for name, sizes in PRESETS.items()}  # as in the released configurations


@dataclass(frozen=True)
class ModernBertConfig(PieceConfig):
    """The sizes of a ModernBERT and how to compute it; from `preset`, `from_json`, or by hand.

    `attention_pattern` has a letter per layer, "g" for global and "l" for local attention, and is repeated if there
    are more layers. In a local layer, a piece sees `local_attention // 2` pieces on each side. `dropout` is applied in
    the feed-forward layers, `attention_dropout` to attention maps and to the outputs of attention. With `scan`, one
    period of the pattern is compiled and looped over.

    >>> ModernBertConfig(num_layers=4).kinds
    'gllg'
    """

    vocab_size: int = 50_368
    num_layers: int = 22
    feed_forward_size: int = 1152
    max_positions: int = 8192
    dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.0
    attention_pattern: str = placed("gll", after="max_positions")
    local_attention: int = 128
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0
    head_activation: str = placed("gelu", after="activation")
    norm_eps: float = 1e-5
    attention_bias: bool = False
    feed_forward_bias: bool = False
    norm_bias: bool = False
    head_bias: bool = False
    decoder_bias: bool = True
    pooling: Literal["cls", "mean"] = "cls"
    embedding_dropout: float = placed(0.0, after="dropout")
    initializer_cut: float = placed(2.0, after="initializer_range")

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        activation(self.head_activation)
        self.check_rotary()
        for name in ("global_theta", "local_theta", "initializer_cut"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not self.attention_pattern or set(self.attention_pattern) - {"g", "l"}:
            raise ValueError(
                f"attention_pattern is {self.attention_pattern!r}; it has a letter per layer, g (global) or l (local), "
                "such as 'gll'"
            )

    @property
    def kinds(self) -> str:
        """The kind of each layer: "g" for global attention, "l" for local."""
        return (self.attention_pattern * self.num_layers)[: self.num_layers]

    @property
    def output_range(self) -> float:
        """The initial deviation of kernels whose output is added to the residual, and of the head's."""
        return self.initializer_range / math.sqrt(2 * self.num_layers)

    def window(self, kind: str) -> int | None:
        """Return how many pieces on each side a layer of this kind sees; None for all."""
        return None if kind == "g" else self.local_attention // 2

    def pieces_seen(self, length: int) -> int:
        """Return how many pieces of a row a piece sees at most, summed over the layers.

        >>> ModernBertConfig(num_layers=3, local_attention=8).pieces_seen(100)
        118
        """
        local = min(length, 2 * (self.local_attention // 2) + 1)
        return sum(length if kind == "g" else local for kind in self.kinds)

    def theta(self, kind: str) -> float:
        """Return the base of the rotary angles of a layer of this kind."""
        return self.global_theta if kind == "g" else self.local_theta
