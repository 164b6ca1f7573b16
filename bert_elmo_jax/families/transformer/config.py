"""The configuration of a Transformer that translates."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed, unshown
from bert_elmo_jax.families.transformer.marian_config import FILE

PRESETS: dict[str, dict[str, Any]] = {
    "base": {"hidden_size": 512, "num_layers": 6, "num_heads": 8, "feed_forward_size": 2048, "dropout": 0.1},
    "big": {"hidden_size": 1024, "num_layers": 6, "num_heads": 16, "feed_forward_size": 4096, "dropout": 0.3},
}


@dataclass(frozen=True)
class TransformerConfig(PieceConfig):
    """The sizes of a Transformer of Vaswani et al. 2017 and how to compute it; from `preset`, `from_json`, or by hand.

    `vocab_size` is the source's; the target has the same pieces unless `share_embeddings` is False and
    `target_vocab_size` is given. Fields of the decoder that are None have the encoder's values. `key_size` and
    `value_size` are d_k and d_v of the paper, by default `hidden_size / num_heads`. `tie_output` reads the softmax from
    the target's embeddings. `output_bias` adds a constant to the logits, as Marian's files have it.

    `dropout` is applied to the sums of embeddings and positions and before each residual, `attention_dropout` to
    attention maps, and `activation_dropout` inside the feed-forward layers. Without `initializer_range`, kernels have
    Glorot's variance and the embeddings the variance 1 / `hidden_size`.

    `start_id` is the decoder's first piece and `end_ids` are the pieces that end a text. `forbidden_ids` are never
    written, and `forced_end_id` is written in the last place. The decoder's attention is always "reference". The fields
    from `max_new` to `no_repeat_ngram_size` are what `generate` does if it is not told otherwise; None is its usual
    value. With `renormalize_logits`, forbidden pieces have no share of the probability in scores.

    >>> TransformerConfig.preset("big").hidden_size, TransformerConfig(num_layers=2).target.num_layers
    (1024, 2)
    """

    vocab_size: int = 37000
    hidden_size: int = 512
    num_layers: int = 6
    num_heads: int = 8
    feed_forward_size: int = 2048
    activation: str = "relu"
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.0
    initializer_range: float | None = None  # type: ignore[assignment]
    start_id: int = 2
    end_ids: tuple[int, ...] = (3,)
    forbidden_ids: tuple[int, ...] = ()
    forced_end_id: int | None = None
    target_vocab_size: int | None = placed(None, after="vocab_size")
    decoder_layers: int | None = placed(None, after="num_layers")
    decoder_heads: int | None = placed(None, after="num_heads")
    key_size: int | None = None
    value_size: int | None = None
    decoder_feed_forward_size: int | None = placed(None, after="feed_forward_size")
    positions: Literal["sinusoidal", "learned"] = placed("sinusoidal", after="max_positions")
    scale_embeddings: bool = True
    share_embeddings: bool = True
    tie_output: bool = True
    output_bias: bool = False
    activation_dropout: float = placed(0.0, after="attention_dropout")
    max_new: int | None = unshown(None)
    min_new: int | None = unshown(None)
    beams: int | None = unshown(None)
    length_penalty: float | None = unshown(None)
    early_stopping: str | None = unshown(None)  # false, true or never
    no_repeat_ngram_size: int | None = unshown(None)
    renormalize_logits: bool = unshown(False)

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE  # a Marian model's
    ADDED: ClassVar[tuple[str, ...]] = (  # after the first runs
        "max_new", "min_new", "beams", "length_penalty", "early_stopping", "no_repeat_ngram_size",
        "renormalize_logits",
    )  # fmt: skip
    norm_eps: ClassVar[float] = 1e-5
    first_position: ClassVar[int] = 0  # the row of the table of positions that position 0 has
    norm_embeddings: ClassVar[bool] = False  # a norm follows the sums of embeddings

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        for name in ("end_ids", "forbidden_ids"):  # a list would make the configuration unhashable
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in (
            "target_vocab_size", "decoder_layers", "decoder_heads", "decoder_feed_forward_size", "key_size",
            "value_size",
        ):  # fmt: skip
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} is {size}; it must be at least 1, or None for the encoder's")
        self._check_target()
        for name, least in (("max_new", 1), ("min_new", 0), ("beams", 1), ("no_repeat_ngram_size", 0)):
            number = getattr(self, name)
            if number is not None and number < least:
                raise ValueError(f"{name} is {number}; it is at least {least}, or None for the usual value")
        if self.early_stopping not in (None, "false", "true", "never"):
            raise ValueError(f"early_stopping is {self.early_stopping!r}; it is false, true, never, or None")
        if self.attention != "reference" and self.key_size != self.value_size:
            raise ValueError(
                f"attention={self.attention!r} needs keys and values of one size, but key_size is {self.key_size} and "
                f"value_size {self.value_size}: use attention='reference'"
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
    def writing(self) -> dict[str, Any]:
        """The values of this model for options of `generate`.

        >>> TransformerConfig(beams=4, early_stopping="true").writing
        {'beams': 4, 'early_stopping': True}
        """
        names = ("max_new", "min_new", "beams", "length_penalty", "no_repeat_ngram_size")
        values = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if "max_new" in values:
            values["max_new"] = min(values["max_new"], self.max_positions)
        stopping: Any = self.early_stopping if self.early_stopping == "never" else self.early_stopping == "true"
        return values | ({"early_stopping": stopping} if stopping else {})

    @property
    def target(self) -> "TransformerConfig":
        """The configuration of the decoder, a Transformer whose pieces see only the pieces before them."""
        sizes = {
            "vocab_size": self.vocab_size if self.target_vocab_size is None else self.target_vocab_size,
            "num_layers": self.num_layers if self.decoder_layers is None else self.decoder_layers,
            "num_heads": self.num_heads if self.decoder_heads is None else self.decoder_heads,
            "feed_forward_size": (
                self.feed_forward_size if self.decoder_feed_forward_size is None else self.decoder_feed_forward_size
            ),
            "attention": "reference",
        }
        gone = ("target_vocab_size", "decoder_layers", "decoder_heads", "decoder_feed_forward_size")
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return self._target_class()(**(fields | dict.fromkeys(gone) | sizes))

    def _target_class(self) -> "type[TransformerConfig]":
        return TargetConfig


@dataclass(frozen=True)
class TargetConfig(TransformerConfig):
    """The decoder's side of a Transformer's configuration; from `TransformerConfig.target`."""

    causal: ClassVar[bool] = True
