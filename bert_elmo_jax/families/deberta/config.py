"""DeBERTa's configuration, and the sizes of the generator that version 3 is pretrained with."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.deberta.json_fields import FILE
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.nn import activation
from bert_elmo_jax.nn.attention import check_bias

_LARGE = {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "feed_forward_size": 4096}
_V2 = {"hidden_size": 1536, "num_heads": 24, "feed_forward_size": 6144, "conv_kernel_size": 3}
_V1 = {
    "vocab_size": 50_265, "model_type": "deberta", "position_buckets": 0, "share_att_key": False,
    "norm_relative": False,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "xsmall": {"hidden_size": 384, "num_heads": 6, "feed_forward_size": 1536},
    "small": {"num_layers": 6},
    "base": {},
    "large": _LARGE,
    "multilingual-base": {"vocab_size": 251_000},
    "v2-xlarge": {**_V2, "num_layers": 24, "conv_activation": "gelu"},
    "v2-xxlarge": {**_V2, "num_layers": 48, "conv_activation": "gelu"},
    "v1-base": _V1,
    "v1-large": _V1 | _LARGE,
}


@dataclass(frozen=True)
class DebertaConfig(PieceConfig):
    """The sizes of a DeBERTa and how to compute it; from `preset`, `from_json`, or by hand.

    `model_type` is "deberta-v2" for the versions 2 and 3, "deberta" for version 1. `embedding_size` 0 means
    `hidden_size`; other embeddings are projected. `relative_terms` names the terms of attention scores that read
    distances, `position_buckets` the buckets of each direction (0: none), and `max_relative_positions` the distance
    from which all are the same (0: `max_positions`). Models without `absolute_positions` take rows of any length, but
    texts are cut or refused at `max_positions`. With `embedding_difference`, the word embeddings are the sum of two
    tables; a discriminator trains the second, so that the generator's are not pulled by its loss. `generator_depth` is
    the share of the layers that this generator has.

    >>> config = DebertaConfig.preset("small")
    >>> config.num_layers, config.generator.num_layers, config.relative_rows
    (6, 3, 512)
    """

    vocab_size: int = 128_100
    embedding_size: int = placed(0, after="vocab_size")
    type_vocab_size: int = placed(0, after="max_positions")
    norm_eps: float = placed(1e-7, after="activation")
    model_type: Literal["deberta-v2", "deberta"] = placed("deberta-v2", after="pad_id")
    absolute_positions: bool = False
    relative_terms: Literal["none", "c2p", "p2c", "c2p|p2c"] = "c2p|p2c"
    position_buckets: int = 256
    max_relative_positions: int = 0
    share_att_key: bool = True  # positions are projected like content, by `query` and `key`
    norm_relative: bool = True  # the table of positions has a layer norm
    conv_kernel_size: int = 0  # of the convolution after the first layer; 0: none
    conv_groups: int = 1
    conv_activation: str = "tanh"
    pooler_activation: str = "gelu"
    legacy: bool = True  # the names of the head of masked words in files: `cls.predictions`, not `lm_predictions`
    embedding_difference: bool = False
    generator_depth: float = 0.5

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (
        "embedding_size", "type_vocab_size", "position_buckets", "max_relative_positions", "conv_kernel_size",
    )  # fmt: skip

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        activation(self.conv_activation)
        activation(self.pooler_activation)
        if self.attention in ("fused", "splash"):
            raise ValueError(
                f"attention is {self.attention!r}, whose kernels do not train scores that depend on distances and "
                "content: use attention='reference'"
            )
        if self.terms:
            check_bias(self.attention)
        if self.conv_kernel_size and self.conv_kernel_size % 2 == 0:
            raise ValueError(f"conv_kernel_size is {self.conv_kernel_size}; it is odd, or 0 for no convolution")
        if self.hidden_size % self.conv_groups:
            raise ValueError(f"conv_groups is {self.conv_groups}; it must divide hidden_size {self.hidden_size}")
        buckets, last = self.position_buckets, self.largest_distance - 1
        if buckets and (buckets < 2 or last in (0, buckets // 2)):  # the formula divides by log(last / (buckets // 2))
            raise ValueError(
                f"position_buckets is {buckets} for distances up to {self.largest_distance} "
                "(max_relative_positions, or else max_positions): use at least 2 and fewer than twice the distances, "
                "or 0 for no buckets"
            )
        if not 0 < self.generator_depth <= 1:
            raise ValueError(
                f"generator_depth is {self.generator_depth}; it is the generator's share of num_layers, above 0 and at "
                "most 1, such as 0.5"
            )
        if self.model_type == "deberta":
            without = {"position_buckets": 0, "share_att_key": False, "norm_relative": False, "conv_kernel_size": 0}
            extra = [f"{name}={getattr(self, name)}" for name, value in without.items() if getattr(self, name) != value]
            if extra:
                raise ValueError(f"a DeBERTa of version 1 has no {', '.join(extra)}: use model_type='deberta-v2'")

    @property
    def limits_rows(self) -> bool:
        """True if positions have embeddings, so that no row is longer than they are."""
        return self.absolute_positions

    @property
    def terms(self) -> tuple[str, ...]:
        """The names in `relative_terms`."""
        return () if self.relative_terms == "none" else tuple(self.relative_terms.split("|"))

    @property
    def word_size(self) -> int:
        """The width of the word embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def largest_distance(self) -> int:
        """The distance from which all are the same."""
        return self.max_relative_positions or self.max_positions

    @property
    def relative_rows(self) -> int:
        """The rows of the table of relative positions; 0 without relative terms."""
        return 2 * (self.position_buckets or self.largest_distance) if self.terms else 0

    @property
    def generator(self) -> "DebertaConfig":
        """The configuration of the generator, which has fewer layers and is as wide."""
        layers = max(1, round(self.generator_depth * self.num_layers))
        return dataclasses.replace(self, num_layers=layers, embedding_difference=False)
