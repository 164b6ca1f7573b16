"""BERT's configuration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from bert_elmo_jax.earlier_names import DIRECTIONS
from bert_elmo_jax.families.bert.formats import FILE
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed

PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"num_layers": 2, "hidden_size": 128, "num_heads": 2, "feed_forward_size": 512},
    "mini": {"num_layers": 4, "hidden_size": 256, "num_heads": 4, "feed_forward_size": 1024},
    "small": {"num_layers": 4, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "medium": {"num_layers": 8, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "base": {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 3072},
    "large": {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096},
}
PRESETS["multilingual"] = PRESETS["base"] | {"vocab_size": 119547}


@dataclass(frozen=True)
class BertConfig(PieceConfig):
    """The sizes of a BERT and how to compute it; from `preset`, `from_json`, or by hand.

    Five fields choose what other encoders changed. With `causal`, a piece sees only the pieces before it. `norm` is
    after each part of a layer ("post", as in the original) or before it ("pre", with one more norm after the last
    layer). `feed_forward` has two dense layers or a gated unit ("gated": GeGLU with the activation "gelu", SwiGLU with
    "silu"). `position` is a learned embedding, or rotates queries and keys ("rotary", by angles with the base
    `rotary_theta`). With `layer_bias=False`, layers and their norms have no biases; the norm of the embeddings, the
    pooler and the heads keep theirs.
    """

    causal: bool = False
    norm: Literal["post", "pre"] = "post"
    feed_forward: Literal["dense", "gated"] = "dense"
    position: Literal["learned", "rotary"] = "learned"
    rotary_theta: float = 10_000.0
    layer_bias: bool = True
    type_vocab_size: int = placed(2, after="max_positions")
    norm_eps: float = placed(1e-12, after="activation")

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE
    # Fields that the first runs did not have: their default is the original, so older files mean it.
    ADDED: ClassVar[tuple[str, ...]] = ("norm", "feed_forward", "position", "rotary_theta", "layer_bias")

    def __post_init__(self, implementation: str | None) -> None:
        if self.attention in DIRECTIONS:  # as earlier versions had it
            object.__setattr__(self, "causal", self.attention == "causal")
            object.__setattr__(self, "attention", "reference")
        super().__post_init__(implementation)
        if not 0 < self.rotary_theta < math.inf:
            raise ValueError(f"rotary_theta is {self.rotary_theta}; it must be above 0")
        if self.position == "rotary":
            self.check_rotary()

    def _first_name(self, name: str) -> str:
        return "attention" if name == "causal" else super()._first_name(name)

    def _first_value(self, name: str) -> Any:
        return DIRECTIONS[self.causal] if name == "causal" else super()._first_value(name)

    @property
    def changed(self) -> dict[str, Any]:
        """The fields that make this model differ from the original BERT, with their values.

        >>> BertConfig(norm="pre", rotary_theta=500.0).changed
        {'norm': 'pre'}
        """
        defaults = {field.name: field.default for field in fields(self) if field.name in self.ADDED}
        del defaults["rotary_theta"]  # it says nothing without rotary positions, which are named themselves
        return {name: getattr(self, name) for name in defaults if getattr(self, name) != defaults[name]}

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        if self.causal:
            raise ValueError(
                "Hugging Face's config.json for an encoder cannot say causal=True; only bidirectional models are "
                "written"
            )
        for name, value in self.changed.items():
            raise ValueError(
                f"Hugging Face's config.json for a BERT cannot say {name}={value!r}; only models with "
                f"{name}={getattr(BertConfig, name)!r} are written"
            )
        return super().to_huggingface(heads)
