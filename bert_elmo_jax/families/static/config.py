"""The configuration of static word vectors."""

from dataclasses import dataclass
from typing import Any, Literal

from bert_elmo_jax.families.family import check_choices, choose_preset

PRESETS: dict[str, dict[str, Any]] = {
    "skipgram": {},
    "cbow": {"method": "cbow"},
    "glove": {"method": "glove"},
    "fasttext": {"method": "fasttext"},
    "toy": {"hidden_size": 32},
}
LONGEST = 100  # characters of an n-gram


@dataclass(frozen=True)
class StaticConfig:
    """The words and the width of static vectors, and the method that trains them; from `preset`, or by hand.

    With fasttext, a vector is the mean of the vectors of the word itself and of its n-grams of `shortest` to `longest`
    characters, which are hashed into `buckets`, so words outside of the vocabulary have vectors, too. Vectors are given
    out in `dtype`.

    >>> StaticConfig.preset("fasttext", vocab_size=1000).table_size
    2001000
    """

    vocab_size: int
    hidden_size: int = 100
    method: Literal["skipgram", "cbow", "glove", "fasttext"] = "skipgram"
    buckets: int = 2_000_000
    shortest: int = 3
    longest: int = 6
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("vocab_size", "hidden_size", "buckets", "shortest", "longest"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
        if self.longest > LONGEST:
            raise ValueError(f"longest is {self.longest:,}; at most {LONGEST}")
        if self.longest < self.shortest:
            raise ValueError(f"longest is {self.longest}, below shortest, {self.shortest}")

    @property
    def num_layers(self) -> int:
        """The number of the last layer: the vectors themselves are layer 0."""
        return 0

    @property
    def gram_rows(self) -> int:
        """The rows of n-grams in the table of vectors: the buckets of fasttext, none of the other methods."""
        return self.buckets if self.method == "fasttext" else 0

    @property
    def table_size(self) -> int:
        """The rows of the table of vectors: the words, then the n-grams."""
        return self.vocab_size + self.gram_rows

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "StaticConfig":
        """Return the configuration of a named size, with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))
