"""The configuration of static word vectors."""

from dataclasses import dataclass
from typing import Any, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset

PRESETS: dict[str, dict[str, Any]] = {
    "skipgram": {},
    "cbow": {"method": "cbow"},
    "glove": {"method": "glove"},
    "fasttext": {"method": "fasttext", "buckets": 2_000_000},
    "toy": {"hidden_size": 32},
}


@dataclass(frozen=True)
class StaticConfig:
    """The words and the width of static vectors, and the method that trains them; from `preset`, or by hand.

    With `buckets`, a vector is the mean of those of the word itself and of its n-grams of `shortest` to `longest`
    characters, so words outside of the vocabulary have vectors, too. Vectors are given out in `dtype`.

    >>> StaticConfig.preset("fasttext", vocab_size=1000).table_size
    2001000
    """

    vocab_size: int
    hidden_size: int = 100
    method: Literal["skipgram", "cbow", "glove", "fasttext"] = "skipgram"
    buckets: int = 0
    shortest: int = 3
    longest: int = 6
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("vocab_size", "hidden_size", "shortest", "longest"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
        if type(self.buckets) is not int or self.buckets < 0:
            raise ValueError(f"buckets is {self.buckets!r}; it must be a whole number, and 0 for words alone")
        if self.longest < self.shortest:
            raise ValueError(f"longest is {self.longest}, below shortest, {self.shortest}")
        if (self.method == "fasttext") != (self.buckets > 0):
            raise ValueError(f"buckets is {self.buckets} and method {self.method}: fasttext, and no other, has buckets")

    @property
    def num_layers(self) -> int:
        """The number of the last layer: the vectors themselves are layer 0."""
        return 0

    @property
    def table_size(self) -> int:
        """The rows of the table of vectors: the words, then the buckets."""
        return self.vocab_size + self.buckets

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "StaticConfig":
        """Return the configuration of a named size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))
