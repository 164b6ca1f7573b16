"""ELECTRA's configuration, and the sizes of its generator."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bert_elmo_jax.families.electra.formats import FILE
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed

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


@dataclass(frozen=True)
class ElectraConfig(PieceConfig):
    """The sizes of an ELECTRA and how to compute it; from `preset`, `from_json`, or by hand.

    The encoder is the same for generators and discriminators. `embedding_size` is the width of the embeddings, which
    are projected if it differs from `hidden_size`. `generator_size` is the width of the generator that a discriminator
    is pretrained with, as a share of its own.

    >>> config = ElectraConfig.preset("koelectra-base-v3")
    >>> config.vocab_size, config.generator.hidden_size, config.generator.embedding_size
    (35000, 256, 768)
    """

    embedding_size: int = placed(128, after="vocab_size")
    hidden_size: int = 256
    num_heads: int = 4
    feed_forward_size: int = 1024
    type_vocab_size: int = placed(2, after="max_positions")
    norm_eps: float = placed(1e-12, after="activation")
    generator_size: float = placed(0.25, after="pad_id")

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    FILE: ClassVar[ConfigFile] = FILE

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        if not 0 < self.generator_size <= 1:
            raise ValueError(
                f"generator_size is {self.generator_size}; it is the generator's share of hidden_size, above 0 and at "
                "most 1, such as 0.25"
            )

    @property
    def generator(self) -> "ElectraConfig":
        """The configuration of the generator: narrower, with fewer heads, the same depth and the same embeddings."""
        share = self.generator_size
        width, inner = (max(1, round(share * size)) for size in (self.hidden_size, self.feed_forward_size))
        heads = next(n for n in range(max(1, round(share * self.num_heads)), 0, -1) if width % n == 0)
        return dataclasses.replace(
            self, hidden_size=width, num_heads=heads, feed_forward_size=inner, generator_size=1.0
        )
