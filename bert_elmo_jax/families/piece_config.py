"""The configuration that all transformers on pieces share, and its checks."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from bert_elmo_jax.families.family import check_choices, choose_preset
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.nn import activation
from bert_elmo_jax.nn.attention import get_attention

Config = TypeVar("Config", bound="PieceConfig")


def placed(default: Any, after: str) -> Any:
    """Return the default of a field that the text of a configuration shows after another one; see `PieceConfig`."""
    return field(default=default, metadata={"after": after})


def unshown(default: Any) -> Any:
    """Return the default of a field that the text of a configuration leaves out, as it changes no vectors."""
    return field(default=default, metadata={"shown": False})


@dataclass(frozen=True)
class PieceConfig:
    """The sizes of a transformer on pieces and how to compute it.

    A family adds its own fields, and may change defaults. `preset` and `from_json` make configurations, too.

    The last four fields change neither the parameters nor (beyond rounding, for `dtype`) the numbers: `attention`
    ("reference", "fused", on a GPU or TPU the names of `nn.attention`, or one of `register_attention`, which may change
    the numbers), `remat` (the backward pass computes the layers again), `scan` (one layer is compiled and looped
    over), `dtype` ("float32" or "bfloat16" for the layers; parameters, softmax, statistics and logits are always
    float32).

    Fingerprints of models hash the text of their configuration. It has the order and the names that the fields had
    in the first runs: fields of a family come between `pad_id` and `attention`, or where `placed` puts them.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    feed_forward_size: int = 3072
    max_positions: int = 512
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    pad_id: int = 0
    attention: str = "reference"
    remat: bool = False
    scan: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    implementation: InitVar[str | None] = field(default=None, kw_only=True)  # the earlier name of `attention`

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]]
    FILE: ClassVar[ConfigFile]  # `config.json`
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = ()  # whole numbers of a family that are 0 for a part that a model lacks

    def __post_init__(self, implementation: str | None) -> None:
        if implementation is not None:
            object.__setattr__(self, "attention", implementation)
        activation(self.activation)
        get_attention(self.attention)
        check_choices(self)
        self._check_sizes()

    def _check_sizes(self) -> None:
        for part in dataclasses.fields(self):
            value = getattr(self, part.name)
            least = 0 if part.name in self.MAY_BE_ZERO else 1
            if part.type is int and not part.name.endswith("_id") and value < least:
                raise ValueError(f"{part.name} is {value}; it must be at least {least}")
            if part.name.endswith("dropout") and value is not None and not 0 <= value < 1:
                raise ValueError(f"{part.name} is {value}; a dropout rate is at least 0 and below 1")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} cannot be split evenly among num_heads {self.num_heads}; a head has "
                "hidden_size / num_heads elements, so choose a divisor"
            )
        if not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps is {self.norm_eps}; it is a number above 0 and below 1, such as 1e-12")
        if self.initializer_range is not None and not 0 <= self.initializer_range < math.inf:
            raise ValueError(
                f"initializer_range is {self.initializer_range}; it is a deviation, 0 or more, such as 0.02"
            )
        if not 0 <= self.pad_id < self.vocab_size:
            raise ValueError(f"pad_id is {self.pad_id}; the vocabulary has the ids 0 to {self.vocab_size - 1}")

    def check_rotary(self) -> None:
        """Raise unless heads have an even size, as rotary positions need."""
        if self.head_size % 2:
            raise ValueError(
                f"hidden_size {self.hidden_size} and num_heads {self.num_heads} give heads of size {self.head_size}, "
                "but rotary positions turn them in pairs: choose num_heads so that the size is even"
            )

    def __str__(self) -> str:
        names = [part.name for part in dataclasses.fields(PieceConfig)]
        place = "pad_id"
        for part in dataclasses.fields(self):
            if part.name not in names and part.metadata.get("shown", True):
                names.insert(names.index(part.metadata.get("after", place)) + 1, part.name)
                place = part.name
        shown = ", ".join(f"{self._first_name(name)}={self._first_value(name)!r}" for name in names)
        return f"{type(self).__name__}({shown})"

    def _first_name(self, name: str) -> str:
        return "implementation" if name == "attention" else name

    def _first_value(self, name: str) -> Any:
        return getattr(self, name)

    @property
    def causal(self) -> bool:
        """True if a piece sees only the pieces before it."""
        return False

    @property
    def limits_rows(self) -> bool:
        """True if no row without positions of its own is longer than `max_positions`."""
        return True

    @property
    def norm_eps(self) -> float:
        """The number that layer norms add to a variance."""
        return 1e-12

    @property
    def layer_owners(self) -> Sequence[int]:
        """For each layer, the number of the one whose parameters it has: its own, unless layers share parameters."""
        return range(self.num_layers)

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def head_dropout(self) -> float:
        """The dropout before a task's dense layer: `classifier_dropout`, or else the encoder's."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def preset(cls: type[Config], name: str, **changes: Any) -> Config:
        """Return the configuration of a released size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, cls.PRESETS) | changes))

    @classmethod
    def from_json(cls: type[Config], source: Mapping[str, Any] | str | Path) -> Config:
        """Read a `config.json`, by path or content; raise on fields that cannot be honoured."""
        config: Config = cls.FILE.read(cls, source)
        return config

    def to_huggingface(self, heads: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the content of a `config.json` for a model with these heads (the keys of the parameter tree)."""
        return self.FILE.write(self, heads)
