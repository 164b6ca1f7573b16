"""DistilBERT's configuration, and its conversion from and to Hugging Face's `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import ConfigFile, check_sizes

PRESETS: dict[str, dict[str, int]] = {
    "base": {"num_layers": 6, "hidden_size": 768, "num_heads": 12, "feed_forward_size": 3072}
}
PRESETS["cased"] = PRESETS["base"] | {"vocab_size": 28996}
PRESETS["multilingual"] = PRESETS["base"] | {"vocab_size": 119547}

FILE = ConfigFile(
    called="a DistilBERT",
    model_type="distilbert",
    names={
        "vocab_size": "vocab_size",
        "hidden_size": "dim",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "feed_forward_size": "hidden_dim",
        "max_positions": "max_position_embeddings",
        "sinusoidal": "sinusoidal_pos_embds",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "classifier_dropout": "seq_classif_dropout",
        "initializer_range": "initializer_range",
        "pad_id": "pad_token_id",
    },
    architectures={
        (): "DistilBertModel",
        ("mlm",): "DistilBertForMaskedLM",
        ("classify",): "DistilBertForSequenceClassification",
        ("choice",): "DistilBertForMultipleChoice",
        ("tag",): "DistilBertForTokenClassification",
        ("span",): "DistilBertForQuestionAnswering",
    },
    only={"tie_weights_": True},
    harmless=frozenset({"qa_dropout"}),  # our head of answer spans has no dropout
)


@dataclass(frozen=True)
class DistilBertConfig:
    """The sizes of a DistilBERT and how to compute it; from `preset`, `from_json`, or by hand.

    `sinusoidal` initialises positions with sines and cosines; they are trained like other parameters. All task heads
    use `classifier_dropout`. The last four fields mean the same as in `BertConfig`.

    >>> DistilBertConfig.preset("multilingual").vocab_size
    119547
    """

    norm_eps: ClassVar[float] = 1e-12
    causal: ClassVar[bool] = False

    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 6
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 512
    sinusoidal: bool = False
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float = 0.2
    initializer_range: float = 0.02
    pad_id: int = 0
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_sizes(self, "DistilBERT")
        check_choices(self)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer."""
        return self.classifier_dropout

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "DistilBertConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "DistilBertConfig":
        """Read a `config.json`, by path or content; raise on fields of unknown meaning."""
        return FILE.read(cls, source)

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        return FILE.write(self, heads)
