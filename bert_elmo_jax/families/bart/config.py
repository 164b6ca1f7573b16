"""The configuration of a BART."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.bart.config_file import FILE
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import placed
from bert_elmo_jax.families.transformer.config import TransformerConfig

_DROPOUTS = {"attention_dropout": 0.1, "activation_dropout": 0.1}  # of the released models; files without them have 0
PRESETS: dict[str, dict[str, Any]] = {
    "base": {"hidden_size": 768, "num_layers": 6, "num_heads": 12, "feed_forward_size": 3072, **_DROPOUTS},
    "large": {"hidden_size": 1024, "num_layers": 12, "num_heads": 16, "feed_forward_size": 4096, **_DROPOUTS},
}


@dataclass(frozen=True)
class BartConfig(TransformerConfig):
    """The sizes of a BART of Lewis et al. 2020 and how it writes; from `preset`, `from_json`, or by hand.

    It is a Transformer with learned positions, normalised embeddings, gelu and one table of pieces. `start_id` is the
    decoder's first piece and `forced_start_id` the first that it writes, usually the piece that begins a text.

    >>> BartConfig.preset("large").num_layers, BartConfig(num_layers=2).target.num_layers
    (12, 2)
    """

    vocab_size: int = 50265
    hidden_size: int = 768
    num_layers: int = 6
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 1024
    activation: str = "gelu"
    initializer_range: float = 0.02
    pad_id: int = 1
    start_id: int = 2
    end_ids: tuple[int, ...] = (2,)
    forced_end_id: int | None = 2
    positions: Literal["sinusoidal", "learned"] = "learned"
    scale_embeddings: bool = False
    output_bias: bool = True
    forced_start_id: int | None = placed(0, after="activation_dropout")
    max_new: int | None = None
    min_new: int | None = None
    beams: int | None = None
    length_penalty: float | None = None
    early_stopping: Literal["false", "true", "never"] = "false"
    no_repeat_ngram_size: int | None = None

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE
    ADDED: ClassVar[tuple[str, ...]] = ("renormalize_logits",)
    first_position: ClassVar[int] = 2
    norm_embeddings: ClassVar[bool] = True

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        fixed = {"positions": "learned", "share_embeddings": True, "tie_output": True, "output_bias": True}
        for name, value in fixed.items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} is {getattr(self, name)!r}; a BART has only {value!r}")
        if self.forced_start_id is not None and not 0 <= self.forced_start_id < self.vocab_size:
            raise ValueError(f"forced_start_id is {self.forced_start_id}; the ids are 0 to {self.vocab_size - 1}")

    def _target_class(self) -> type[TransformerConfig]:
        return BartTargetConfig


@dataclass(frozen=True)
class BartTargetConfig(BartConfig):
    """The decoder's side of a BART's configuration; from `BartConfig.target`."""

    causal: ClassVar[bool] = True
