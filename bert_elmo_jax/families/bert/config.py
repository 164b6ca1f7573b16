"""BERT's configuration, and its conversion from and to Google's and Hugging Face's JSON files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import ConfigFile, check_sizes

PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"num_layers": 2, "hidden_size": 128, "num_heads": 2, "feed_forward_size": 512},
    "mini": {"num_layers": 4, "hidden_size": 256, "num_heads": 4, "feed_forward_size": 1024},
    "small": {"num_layers": 4, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "medium": {"num_layers": 8, "hidden_size": 512, "num_heads": 8, "feed_forward_size": 2048},
    "base": {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 3072},
    "large": {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096},
}
PRESETS["multilingual"] = PRESETS["base"] | {"vocab_size": 119547}

# Our name -> the name in both JSON files; Google's BERT has the defaults of the last three.
NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "feed_forward_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "norm_eps": "layer_norm_eps",
    "pad_id": "pad_token_id",
    "classifier_dropout": "classifier_dropout",
}

ARCHITECTURES = {
    (): "BertModel",
    ("mlm",): "BertForMaskedLM",
    ("mlm", "nsp"): "BertForPreTraining",
    ("nsp",): "BertForNextSentencePrediction",
    ("classify",): "BertForSequenceClassification",
    ("choice",): "BertForMultipleChoice",
    ("tag",): "BertForTokenClassification",
    ("span",): "BertForQuestionAnswering",
}


FILE = ConfigFile(
    called="a BERT",
    model_type="bert",
    names=NAMES,
    architectures=ARCHITECTURES,
    only={"directionality": "bidi", "pooler_type": "first_token_transform"},
    harmless=frozenset({
        "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
    }),
    written={"position_embedding_type": "absolute"},
)  # fmt: skip


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT and how to compute it; from `preset`, `from_json`, or by hand.

    Four fields choose what later papers changed. `norm` is after each part of a layer ("post", as in the original) or
    before it ("pre", with one more norm after the last layer). `feed_forward` has two dense layers or a gated unit
    ("gated": GeGLU with the activation "gelu", SwiGLU with "silu"). `position` is a learned embedding, or rotates
    queries and keys ("rotary", by angles with the base `rotary_theta`). With `layer_bias=False`, layers and their norms
    have no biases; the norm of the embeddings, the pooler and the heads keep theirs.

    The last four fields change neither the parameters nor (beyond rounding, for `dtype`) the numbers: `implementation`
    of attention ("reference", "fused", or on a TPU "splash"), `remat` (the backward pass computes the layers again),
    `scan` (one layer is compiled and looped over), `dtype` ("float32" or "bfloat16" for the layers; parameters,
    softmax, statistics and logits are always float32).
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    activation: str = "gelu"
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    pad_id: int = 0
    attention: Literal["bidirectional", "causal"] = "bidirectional"
    norm: Literal["post", "pre"] = "post"
    feed_forward: Literal["dense", "gated"] = "dense"
    position: Literal["learned", "rotary"] = "learned"
    rotary_theta: float = 10_000.0
    layer_bias: bool = True
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    # Fields that the first runs did not have: their default is the original, so older files mean it.
    ADDED: ClassVar[tuple[str, ...]] = ("norm", "feed_forward", "position", "rotary_theta", "layer_bias")

    def __post_init__(self) -> None:
        check_sizes(self, "BERT")
        check_choices(self)
        if not 0 < self.rotary_theta < math.inf:
            raise ValueError(f"rotary_theta is {self.rotary_theta}; it must be above 0")
        if self.position == "rotary" and self.head_size % 2:
            raise ValueError(
                f"hidden_size {self.hidden_size} and num_heads {self.num_heads} give heads of size {self.head_size}, "
                "but position='rotary' rotates them in pairs: choose num_heads so that the size is even"
            )

    @property
    def changed(self) -> dict[str, Any]:
        """The fields that make this model differ from the original BERT, with their values.

        >>> BertConfig(norm="pre", rotary_theta=500.0).changed
        {'norm': 'pre'}
        """
        defaults = {field.name: field.default for field in fields(self) if field.name in self.ADDED}
        del defaults["rotary_theta"]  # it says nothing without rotary positions, which are named themselves
        return {name: getattr(self, name) for name in defaults if getattr(self, name) != defaults[name]}

    @property
    def is_original(self) -> bool:
        """True if the layers are the original BERT's."""
        return not self.changed

    @property
    def causal(self) -> bool:
        """True if a piece sees only the pieces before it."""
        return self.attention == "causal"

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer: `classifier_dropout`, or else the encoder's."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "BertConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "BertConfig":
        """Read a `bert_config.json` or `config.json`, by path or content; raise on fields of unknown meaning."""
        return FILE.read(cls, source)

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        if self.attention != "bidirectional":
            raise ValueError(
                f"Hugging Face's config.json for an encoder cannot say attention={self.attention!r}; only "
                "bidirectional models are written"
            )
        for name, value in self.changed.items():
            raise ValueError(
                f"Hugging Face's config.json for a BERT cannot say {name}={value!r}; only models with "
                f"{name}={getattr(BertConfig, name)!r} are written"
            )
        return FILE.write(self, heads)
