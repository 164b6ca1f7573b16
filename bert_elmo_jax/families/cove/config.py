"""CoVe's configuration."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset

PRESETS: dict[str, dict[str, Any]] = {
    "original": {},
    "toy": {
        "vector_size": 64, "lstm_size": 64, "num_layers": 2, "decoder_layers": 1, "target_size": 64, "dropout": 0.0,
    },
}  # fmt: skip


@dataclass(frozen=True)
class CoveConfig:
    """The sizes of a CoVe and how to compute it; from `preset`, or by hand.

    The encoder reads word vectors of `vector_size` numbers; each of its `num_layers` layers has `lstm_size` cells in
    each direction. With `vocab_size`, the model has its own table of word vectors, trained only with `train_vectors`;
    without it, the vectors come from a file, as for released weights. The other fields are for the decoder of the
    pretraining: its layers have 2 · `lstm_size` cells, it reads vectors of `target_size` numbers, and a target is
    between the words `bos_id` and `eos_id`. Matrices are multiplied in `dtype`; parameters, cells and gates are
    always float32.

    >>> CoveConfig().layer_size, CoveConfig.preset("toy", vocab_size=100).num_layers
    (600, 2)
    """

    vector_size: int = 300
    lstm_size: int = 300
    num_layers: int = 2
    vocab_size: int | None = None
    train_vectors: bool = False
    decoder_layers: int = 2
    target_size: int = 300
    bos_id: int = 0
    eos_id: int = 1
    unk_id: int = 2
    dropout: float = 0.2
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_choices(self)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            count = field.type in (int, int | None) and not field.name.endswith("_id") and value is not None
            if count and (type(value) is not int or value < 1):
                raise ValueError(f"{field.name} is {value!r}; it must be a whole number, at least 1")
        for name in ("bos_id", "eos_id", "unk_id"):
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) < (self.vocab_size or 1 << 31):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be the id of a word, 0 to vocab_size - 1")
        if not isinstance(self.train_vectors, bool):
            raise ValueError(f"train_vectors is {self.train_vectors!r}; it must be true or false")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; a dropout rate is at least 0 and below 1")
        if self.decoder_layers > self.num_layers:
            raise ValueError(
                f"decoder_layers is {self.decoder_layers} and num_layers {self.num_layers}: each layer of the decoder "
                "starts from the last state of a layer of the encoder, so it has at most as many"
            )

    @property
    def layer_size(self) -> int:
        """The size of a word's vector in each LSTM layer: both directions side by side."""
        return 2 * self.lstm_size

    @property
    def hidden_size(self) -> int:
        """The size of a vector where all layers have one size; the narrower ones are padded with zeros."""
        return max(self.layer_size, self.vector_size)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "CoveConfig":
        """Return the configuration of a named size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))
