"""The configuration of a GPT, and its conversion from and to the two kinds of Hugging Face's `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bert_elmo_jax.families.gpt.json_fields import GPT1, GPT2, choose_file
from bert_elmo_jax.families.piece_config import PieceConfig, placed

_GPT2 = {"vocab_size": 50257, "max_positions": 1024, "end_id": 50256, "pad_id": 50256}
_MEDIUM = {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096}
_LARGE = {"num_layers": 36, "hidden_size": 1280, "num_heads": 20, "feed_forward_size": 5120}
_XL = {"num_layers": 48, "hidden_size": 1600, "num_heads": 25, "feed_forward_size": 6400}
PRESETS: dict[str, dict[str, Any]] = {
    "gpt": {"vocab_size": 40478, "max_positions": 512, "norm_first": False},
    "gpt2": _GPT2,
    "gpt2-medium": _GPT2 | _MEDIUM,
    "gpt2-large": _GPT2 | _LARGE,
    "gpt2-xl": _GPT2 | _XL,
}


@dataclass(frozen=True)
class GptConfig(PieceConfig):
    """The sizes of a GPT and how to compute it; from `preset`, `from_json`, or by hand.

    With `norm_first` it is a GPT-2: layer norms come before attention and feed-forward, and one more after the last
    layer. Without, it is a GPT-1, whose norms come after the residuals. `dropout` applies to the residual branches.
    `scale_attention` divides the scores by the root of the size of a head, and `scale_by_layer` divides the scores of
    layer i by i, from 1. `end_id` is the piece that ends a text; generation stops there.

    >>> GptConfig.preset("gpt2-xl").num_layers, GptConfig.preset("gpt").norm_first
    (48, False)
    """

    vocab_size: int = 50257
    max_positions: int = 1024
    activation: str = "gelu_new"
    classifier_dropout: float = 0.1
    end_id: int | None = None
    norm_first: bool = placed(True, after="max_positions")
    norm_eps: float = placed(1e-5, after="activation")
    scale_attention: bool = True
    scale_by_layer: bool = False
    embedding_dropout: float = placed(0.1, after="dropout")

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    causal: ClassVar[bool] = True

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        if self.end_id is not None and not 0 <= self.end_id < self.vocab_size:
            raise ValueError(f"end_id is {self.end_id}; the vocabulary has the ids 0 to {self.vocab_size - 1}")

    def query_scale(self, layer: int) -> float:
        """Return the factor of a layer's queries, before scores are divided by the root of the size of a head.

        >>> GptConfig(scale_by_layer=True).query_scale(1)
        0.5
        """
        scale = 1.0 if self.scale_attention else self.head_size**0.5
        return scale / (layer + 1) if self.scale_by_layer else scale

    @property
    def plain_scale(self) -> bool:
        """True if all layers divide their scores by the root of the head's size and nothing else."""
        return self.scale_attention and not self.scale_by_layer

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "GptConfig":
        """Read a `config.json`, by path or content; raise on fields that cannot be honoured."""
        config: GptConfig = choose_file(source).read(cls, source)
        return config

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        return (GPT2 if self.norm_first else GPT1).write(self, heads)
