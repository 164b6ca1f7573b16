"""The configuration of a Transformer that translates."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import check_sizes

PRESETS: dict[str, dict[str, Any]] = {
    "base": {"hidden_size": 512, "num_layers": 6, "num_heads": 8, "feed_forward_size": 2048, "dropout": 0.1},
    "big": {"hidden_size": 1024, "num_layers": 6, "num_heads": 16, "feed_forward_size": 4096, "dropout": 0.3},
}


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a Transformer of Vaswani et al. 2017 and how to compute it; from `preset`, `from_json`, or by hand.

    `vocab_size` is the source's; the target has the same pieces unless `share_embeddings` is False and
    `target_vocab_size` is given. Fields of the decoder that are None have the encoder's values. `key_size` and
    `value_size` are d_k and d_v of the paper, by default `hidden_size / num_heads`. `tie_output` reads the softmax from
    the target's embeddings. `output_bias` adds a constant to the logits, as Marian's files have it.

    `dropout` is applied to the sums of embeddings and positions and before each residual, `attention_dropout` to
    attention maps, and `activation_dropout` inside the feed-forward layers. Without `initializer_range`, kernels have
    Glorot's variance and the embeddings the variance 1 / `hidden_size`.

    `start_id` is the decoder's first piece and `end_ids` are the pieces that end a text. `forbidden_ids` are never
    written, and `forced_end_id` is written in the last place. The last four fields mean the same as in `BertConfig`;
    the decoder's attention is always the reference implementation.

    >>> TransformerConfig.preset("big").hidden_size, TransformerConfig(num_layers=2).target.num_layers
    (1024, 2)
    """

    norm_eps: ClassVar[float] = 1e-5
    causal: ClassVar[bool] = False

    vocab_size: int = 37000
    target_vocab_size: int | None = None
    hidden_size: int = 512
    num_layers: int = 6
    decoder_layers: int | None = None
    num_heads: int = 8
    decoder_heads: int | None = None
    key_size: int | None = None
    value_size: int | None = None
    feed_forward_size: int = 2048
    decoder_feed_forward_size: int | None = None
    max_positions: int = 512
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    scale_embeddings: bool = True
    share_embeddings: bool = True
    tie_output: bool = True
    output_bias: bool = False
    activation: str = "relu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    classifier_dropout: float = 0.0
    initializer_range: float | None = None
    pad_id: int = 0
    start_id: int = 2
    end_ids: tuple[int, ...] = (3,)
    forbidden_ids: tuple[int, ...] = ()
    forced_end_id: int | None = None
    implementation: Literal["reference", "fused", "splash"] = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("target_vocab_size", "decoder_layers", "decoder_heads", "decoder_feed_forward_size"):
            _check_size(name, getattr(self, name))
        for name in ("key_size", "value_size"):
            _check_size(name, getattr(self, name))
        check_sizes(self, "Transformer")
        self._check_target()
        if not 0 <= self.activation_dropout < 1:
            raise ValueError(
                f"activation_dropout is {self.activation_dropout}; a dropout rate is at least 0 and below 1"
            )
        if self.implementation != "reference" and self.key_size != self.value_size:
            raise ValueError(
                f"implementation={self.implementation!r} needs keys and values of one size, but key_size is "
                f"{self.key_size} and value_size {self.value_size}: use implementation='reference'"
            )

    def _check_target(self) -> None:
        heads = self.num_heads if self.decoder_heads is None else self.decoder_heads
        if self.hidden_size % heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} cannot be split evenly among decoder_heads {heads}: choose a divisor"
            )
        size = self.vocab_size if self.target_vocab_size is None else self.target_vocab_size
        if self.share_embeddings and size != self.vocab_size:
            raise ValueError(
                f"target_vocab_size is {size} and vocab_size {self.vocab_size}, but share_embeddings is True: "
                "one table has one size, so leave out target_vocab_size, or set share_embeddings=False"
            )
        if not self.end_ids:
            raise ValueError("end_ids is empty; give the piece that ends a text")
        named = {"start_id": (self.start_id,), "end_ids": self.end_ids, "forbidden_ids": self.forbidden_ids}
        named["forced_end_id"] = () if self.forced_end_id is None else (self.forced_end_id,)
        for name, ids in named.items():
            for number in ids:
                if not 0 <= number < size:
                    raise ValueError(f"{name} holds {number}; the target's vocabulary has the ids 0 to {size - 1}")

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer."""
        return self.classifier_dropout

    @property
    def target(self) -> "TargetConfig":
        """The configuration of the decoder, a Transformer whose pieces see only the pieces before them."""
        own = {
            "vocab_size": self.vocab_size if self.target_vocab_size is None else self.target_vocab_size,
            "num_layers": self.num_layers if self.decoder_layers is None else self.decoder_layers,
            "num_heads": self.num_heads if self.decoder_heads is None else self.decoder_heads,
            "feed_forward_size": (
                self.feed_forward_size if self.decoder_feed_forward_size is None else self.decoder_feed_forward_size
            ),
            "implementation": "reference",
        }
        gone = ("target_vocab_size", "decoder_layers", "decoder_heads", "decoder_feed_forward_size")
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return TargetConfig(**(fields | dict.fromkeys(gone) | own))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "TransformerConfig":
        """Return the configuration of a size of the paper, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_json(cls, source: Mapping[str, Any] | str | Path) -> "TransformerConfig":
        """Read a `config.json` of a Marian model, by path or content; raise on fields of unknown meaning."""
        from bert_elmo_jax.families.transformer.marian_config import FILE

        return FILE.read(cls, source)

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a Marian model's `config.json`."""
        from bert_elmo_jax.families.transformer.marian_config import FILE

        return FILE.write(self, heads)


@dataclass(frozen=True)
class TargetConfig(TransformerConfig):
    """The decoder's side of a Transformer's configuration; from `TransformerConfig.target`."""

    causal: ClassVar[bool] = True


def _check_size(name: str, size: int | None) -> None:
    if size is not None and size < 1:
        raise ValueError(f"{name} is {size}; it must be at least 1, or None for the encoder's")
