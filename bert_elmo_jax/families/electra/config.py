"""ELECTRA's configuration, its conversion from and to Hugging Face's `config.json`, and the sizes of its generator."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import ConfigFile, check_sizes

_SMALL = {"embedding_size": 128, "hidden_size": 256, "num_layers": 12, "num_heads": 4, "feed_forward_size": 1024}
_BASE = {"embedding_size": 768, "hidden_size": 768, "num_layers": 12, "num_heads": 12, "feed_forward_size": 3072}
_LARGE = {"embedding_size": 1024, "hidden_size": 1024, "num_layers": 24, "num_heads": 16, "feed_forward_size": 4096}
# ELECTRA-small++ is `small`, trained for longer.
PRESETS: dict[str, dict[str, Any]] = {
    "small": {**_SMALL, "generator_size": 1 / 4},
    "base": {**_BASE, "generator_size": 1 / 3},
    "large": {**_LARGE, "generator_size": 1 / 4},
}
PRESETS["koelectra-small-v3"] = PRESETS["small"] | {"vocab_size": 35000}
PRESETS["koelectra-base-v3"] = PRESETS["base"] | {"vocab_size": 35000}


def _add_generator(values: dict[str, Any]) -> dict[str, Any]:
    """Add the generator's size, which no file has: the paper's for a discriminator of this width."""
    return values | {"generator_size": 1 / 3 if values.get("hidden_size") == 768 else 1 / 4}


FILE = ConfigFile(
    called="an ELECTRA",
    model_type="electra",
    names={
        "vocab_size": "vocab_size",
        "embedding_size": "embedding_size",
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
        (): "ElectraModel",
        ("mlm",): "ElectraForMaskedLM",
        ("replaced",): "ElectraForPreTraining",
        ("classify",): "ElectraForSequenceClassification",
        ("choice",): "ElectraForMultipleChoice",
        ("tag",): "ElectraForTokenClassification",
        ("span",): "ElectraForQuestionAnswering",
    },
    # The first layer of the head for multiple choice.
    only={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    harmless=frozenset({"summary_last_dropout", "summary_first_dropout"}),  # our heads have one rate of dropout
    written={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    to_ours=_add_generator,
)


@dataclass(frozen=True)
class ElectraConfig:
    """The sizes of an ELECTRA and how to compute it; from `preset`, `from_json`, or by hand.

    The encoder is the same for generators and discriminators. `embedding_size` is the width of the embeddings, which
    are projected if it differs from `hidden_size`. `generator_size` is the width of the generator that a discriminator
    is pretrained with, as a share of its own. The last four fields mean the same as in `BertConfig`.

    >>> config = ElectraConfig.preset("koelectra-base-v3")
    >>> config.vocab_size, config.generator.hidden_size, config.generator.embedding_size
    (35000, 256, 768)
    """

    causal: ClassVar[bool] = False

    vocab_size: int = 30522
    embedding_size: int = 128
    hidden_size: int = 256
    num_layers: int = 12
    num_heads: int = 4
    feed_forward_size: int = 1024
    max_positions: int = 512
    type_vocab_size: int = 2
    activation: str = "gelu"
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    pad_id: int = 0
    generator_size: float = 0.25
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_sizes(self, "ELECTRA")
        check_choices(self)
        if not 0 < self.generator_size <= 1:
            raise ValueError(
                f"generator_size is {self.generator_size}; it is the generator's share of hidden_size, above 0 and at "
                "most 1, such as 0.25"
            )

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer: `classifier_dropout`, or else the encoder's."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def generator(self) -> "ElectraConfig":
        """The configuration of the generator: narrower, with fewer heads, the same depth and the same embeddings."""
        share = self.generator_size
        width, inner = (max(1, round(share * size)) for size in (self.hidden_size, self.feed_forward_size))
        heads = next(n for n in range(max(1, round(share * self.num_heads)), 0, -1) if width % n == 0)
        return dataclasses.replace(
            self, hidden_size=width, num_heads=heads, feed_forward_size=inner, generator_size=1.0
        )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ElectraConfig":
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "ElectraConfig":
        """Read a `config.json`, by path or content; raise on fields of unknown meaning."""
        return FILE.read(cls, source)

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        return FILE.write(self, heads)
