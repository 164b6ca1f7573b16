"""AWD-LSTM's configuration."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset, show_config

RATES = ("output_dropout", "hidden_dropout", "input_dropout", "embedding_dropout", "weight_dropout")
POOLING = ("last", "max", "mean")  # of the vectors of a document's words
PRESETS: dict[str, dict[str, Any]] = {
    "original": {},
    "fastai": {
        "cell_size": 1152, "output_dropout": 0.1, "hidden_dropout": 0.15, "input_dropout": 0.25,
        "embedding_dropout": 0.02, "weight_dropout": 0.2,
    },
    "toy": {"embedding_size": 48, "cell_size": 96, "num_layers": 2},
}  # fmt: skip


@dataclass(frozen=True)
class AwdLstmConfig:
    """The sizes of an AWD-LSTM and how to train it; from `preset`, or by hand.

    Each of the `num_layers` layers has `cell_size` cells, except for the last, which has `embedding_size`. With
    `tie_softmax`, the softmax over words shares the embeddings; with `output_bias`, it has a bias for each word. A
    backward model reads every text from its end. `classifier` holds the widths of a classifier's linear layers, the
    number of classes last, and `pooling` the vectors of a document that it reads.

    Five kinds of dropout: `embedding_dropout` of whole words, `input_dropout` of embeddings, `hidden_dropout` between
    the layers and `output_dropout` of the last one, all three with one mask for all steps of a row, and
    `weight_dropout` of the matrices between steps. Matrices are multiplied in `dtype`; parameters, cells and gates are
    always float32.

    >>> AwdLstmConfig(vocab_size=100).layer_sizes
    (1150, 1150, 400)
    """

    vocab_size: int
    embedding_size: int = 400
    cell_size: int = 1150
    num_layers: int = 3
    direction: Literal["forward", "backward"] = "forward"
    tie_softmax: bool = True
    output_bias: bool = True
    classifier: tuple[int, ...] = ()
    pooling: str = "last+max+mean"
    output_dropout: float = 0.4
    hidden_dropout: float = 0.3
    input_dropout: float = 0.4
    embedding_dropout: float = 0.05
    weight_dropout: float = 0.5
    dtype: Literal["float32", "bfloat16"] = "float32"

    ADDED: ClassVar[tuple[str, ...]] = ("pooling",)  # after the first runs
    TRAINING_ONLY: ClassVar[tuple[str, ...]] = RATES  # fields that a run from given weights may choose

    def __str__(self) -> str:
        return show_config(self)

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("vocab_size", "embedding_size", "cell_size", "num_layers"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
        for name in ("tie_softmax", "output_bias"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be true or false")
        for name in RATES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a dropout rate is at least 0 and below 1")
        modes = self.pooling.split("+")
        if not set(modes) <= set(POOLING) or len(set(modes)) < len(modes):
            raise ValueError(f"pooling is {self.pooling!r}; expected {', '.join(POOLING)}, or several with + between")
        sizes = self.classifier
        if not isinstance(sizes, tuple | list) or not all(type(size) is int and size >= 1 for size in sizes):
            raise ValueError(f"classifier is {sizes!r}; it holds widths, the number of classes last, such as (50, 2)")
        object.__setattr__(self, "classifier", tuple(sizes))  # a list would make the configuration unhashable

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """The width of each layer's output."""
        return (self.cell_size,) * (self.num_layers - 1) + (self.embedding_size,)

    @property
    def pooled_size(self) -> int:
        """The size of the vectors that a classifier reads."""
        return self.embedding_size * len(self.pooling.split("+"))

    @property
    def hidden_size(self) -> int:
        """The size of a vector where all layers have one size; the narrower ones are padded with zeros."""
        return max(self.embedding_size, *self.layer_sizes)

    @property
    def has_lm_params(self) -> bool:
        """True if the head that predicts words has parameters of its own."""
        return self.output_bias or not self.tie_softmax

    def without_dropout(self) -> "AwdLstmConfig":
        """Return this configuration with all dropout rates 0."""
        none: dict[str, Any] = dict.fromkeys(RATES, 0.0)
        return dataclasses.replace(self, **none)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "AwdLstmConfig":
        """Return the configuration of a named size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))
