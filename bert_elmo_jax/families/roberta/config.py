"""RoBERTa's configuration, also of XLM-R and CamemBERT, and its conversion from and to Hugging Face's `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import ConfigFile, check_sizes

PRESETS: dict[str, dict[str, Any]] = {
    "base": {"num_layers": 12, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 3072},
    "large": {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096},
}
PRESETS["klue-small"] = PRESETS["base"] | {"vocab_size": 32000, "num_layers": 6}
for _size in ("base", "large"):
    PRESETS[f"klue-{_size}"] = PRESETS[_size] | {"vocab_size": 32000}
    PRESETS[f"xlmr-{_size}"] = PRESETS[_size] | {"vocab_size": 250002, "model_type": "xlm-roberta"}


def _to_ours(values: dict[str, Any]) -> dict[str, Any]:
    """Count positions from the first that a text uses; missing fields have the values that transformers assumes."""
    values = {"max_positions": 512, "type_vocab_size": 2, "norm_eps": 1e-12} | values
    return values | {"max_positions": values["max_positions"] - values.get("pad_id", RobertaConfig.pad_id) - 1}


def _to_theirs(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"max_position_embeddings": fields["max_position_embeddings"] + fields["pad_token_id"] + 1}


FILE = ConfigFile(
    called="a RoBERTa",
    model_type="roberta",
    names={
        "model_type": "model_type",
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
    },
    architectures={
        (): "RobertaModel",
        ("mlm",): "RobertaForMaskedLM",
        ("classify",): "RobertaForSequenceClassification",
        ("choice",): "RobertaForMultipleChoice",
        ("tag",): "RobertaForTokenClassification",
        ("span",): "RobertaForQuestionAnswering",
    },
    variants={"xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    to_ours=_to_ours,
    to_theirs=_to_theirs,
)


@dataclass(frozen=True)
class RobertaConfig:
    """The sizes of a RoBERTa and how to compute it; from `preset`, `from_json`, or by hand.

    `max_positions` is the longest text: the `max_position_embeddings` of released models, 514, count `pad_id` + 1 more.
    `model_type` is the name in `config.json`; the mathematics is the same. The last four fields mean the same as in
    `BertConfig`.

    >>> RobertaConfig.preset("klue-base").vocab_size, RobertaConfig.preset("xlmr-large").num_layers
    (32000, 24)
    >>> RobertaConfig().to_huggingface()["max_position_embeddings"]
    514
    """

    causal: ClassVar[bool] = False

    vocab_size: int = 50265
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 1
    activation: str = "gelu"
    norm_eps: float = 1e-5
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    pad_id: int = 1
    model_type: Literal["roberta", "xlm-roberta", "camembert"] = "roberta"
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_sizes(self, "RoBERTa")
        check_choices(self)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer: `classifier_dropout`, or else the encoder's."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "RobertaConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "RobertaConfig":
        """Read a `config.json`, by path or content; raise on fields of unknown meaning."""
        return FILE.read(cls, source)

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        return FILE.write(self, heads)
