"""ModernBERT's configuration, and its conversion from and to Hugging Face's `config.json`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import check_sizes
from bert_elmo_jax.families.modernbert.json_fields import FILE
from bert_elmo_jax.nn import activation

PRESETS: dict[str, dict[str, Any]] = {
    "base": {"num_layers": 22, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 1152, "pad_id": 50_283},
    "large": {"num_layers": 28, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 2624, "pad_id": 50_283},
}


@dataclass(frozen=True)
class ModernBertConfig:
    """The sizes of a ModernBERT and how to compute it; from `preset`, `from_json`, or by hand.

    `attention_pattern` has a letter per layer, "g" for global and "l" for local attention, and is repeated if there
    are more layers. In a local layer, a piece sees `local_attention // 2` pieces on each side. `dropout` is applied in
    the feed-forward layers, `attention_dropout` to attention maps and to the outputs of attention.

    The last four fields change neither the parameters nor (beyond rounding, for `dtype`) the numbers: `implementation`
    of attention ("reference", "fused", or on a TPU "splash"), `remat` (the backward pass computes the layers again),
    `scan` (one period of the pattern is compiled and looped over), `dtype` ("float32" or "bfloat16" for the layers;
    parameters, softmax, statistics and logits are always float32).

    >>> ModernBertConfig(num_layers=4).kinds
    'gllg'
    """

    vocab_size: int = 50_368
    hidden_size: int = 768
    num_layers: int = 22
    num_heads: int = 12
    feed_forward_size: int = 1152
    max_positions: int = 8192
    attention_pattern: str = "gll"
    local_attention: int = 128
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0
    activation: str = "gelu"
    head_activation: str = "gelu"
    norm_eps: float = 1e-5
    attention_bias: bool = False
    feed_forward_bias: bool = False
    norm_bias: bool = False
    head_bias: bool = False
    decoder_bias: bool = True
    pooling: Literal["cls", "mean"] = "cls"
    dropout: float = 0.0
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.0
    initializer_range: float = 0.02
    initializer_cut: float = 2.0
    pad_id: int = 0
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_sizes(self, "ModernBERT")
        activation(self.head_activation)
        if self.head_size % 2:
            raise ValueError(
                f"hidden_size {self.hidden_size} and num_heads {self.num_heads} give heads of size {self.head_size}, "
                "but they are rotated in pairs: choose num_heads so that the size is even"
            )
        if not 0 <= self.embedding_dropout < 1:
            raise ValueError(f"embedding_dropout is {self.embedding_dropout}; a dropout rate is at least 0 and below 1")
        for name in ("global_theta", "local_theta", "initializer_cut"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not self.attention_pattern or set(self.attention_pattern) - {"g", "l"}:
            raise ValueError(
                f"attention_pattern is {self.attention_pattern!r}; it has a letter per layer, g (global) or l (local), "
                "such as 'gll'"
            )
        check_choices(self)

    @property
    def kinds(self) -> str:
        """The kind of each layer: "g" for global attention, "l" for local."""
        return (self.attention_pattern * self.num_layers)[: self.num_layers]

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer."""
        return self.classifier_dropout

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

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModernBertConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "ModernBertConfig":
        """Read a `config.json`, by path or content; raise on fields of unknown meaning."""
        config: ModernBertConfig = FILE.read(cls, source)
        return config

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with this head (a key of the parameter tree).

        It has the fields of both transformers 5 and transformers 4.
        """
        return FILE.write(self, heads)
