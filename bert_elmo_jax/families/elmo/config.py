"""ELMo's configuration, and its conversion from and to `options.json`."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from bert_elmo_jax.did_you_mean import nearest
from bert_elmo_jax.families.family import check_choices, choose_preset, show_config
from bert_elmo_jax.files import read_json, write_json

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
PRESETS: dict[str, dict[str, Any]] = {
    "original": {"cell_size": 4096, "projection_size": 512, "num_highways": 2},
    "medium": {"cell_size": 2048, "projection_size": 256, "num_highways": 1},
    "small": {"cell_size": 1024, "projection_size": 128, "num_highways": 1},
    "toy": {
        "cell_size": 128, "projection_size": 32, "num_highways": 1, "filters": ((1, 8), (2, 16), (3, 32), (4, 64)),
    },
}  # fmt: skip

# Where the file keeps each of our fields.
LSTM = {
    "dim": "cell_size",
    "projection_dim": "projection_size",
    "n_layers": "num_layers",
    "use_skip_connections": "skip_connections",
    "cell_clip": "cell_clip",
    "proj_clip": "proj_clip",
}
CHAR_CNN = {
    "filters": "filters",
    "max_characters_per_token": "max_characters",
    "n_highway": "num_highways",
    "activation": "char_activation",
    "embedding.dim": "char_embedding_size",
}
TOP = {"n_tokens_vocab": "vocab_size", "dropout": "dropout", "share_embedding_softmax": "tie_softmax"}
# The original's defaults for absent options; all others are required (dropout, which only training reads, has the
# value of every published model).
ABSENT = {
    "n_layers": 1, "use_skip_connections": False, "cell_clip": None, "proj_clip": None, "n_highway": 0,
    "n_tokens_vocab": None, "dropout": 0.1, "share_embedding_softmax": False,
}  # fmt: skip
# The type in the file for each type of field; all others are names.
KINDS: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    **dict.fromkeys((int, int | None), (int, "a whole number")),
    **dict.fromkeys((float, float | None), (int | float, "a number")),
}
# Options of training, which do not change the model.
TRAINING = frozenset(
    """
    n_epochs batch_size unroll_steps n_train_tokens n_negative_samples_batch sample_softmax all_clip_norm_val
    learning_rate
    """.split()
)
MOST_CHARACTERS = 10_000  # of a word; every word of a batch takes as much memory
# 261 while training; a released file counts the mask of a padded word too.
NUM_CHARACTERS = (261, 262)
LARGEST = 10**8  # more than any size of a model


@dataclass(frozen=True)
class ElmoConfig:
    """The sizes of an ELMo and how to compute it; from `preset`, `from_options`, or by hand.

    Word input and language-model heads need `vocab_size`. The fields from `char_embedding_size` to `token_projection`
    are for character input only. Without `token_projection` the filters' outputs are the token vectors. Without
    `projection` the LSTM's cells are its outputs, and `proj_clip` is unused. With `reader="attention"`, each direction
    is a Transformer with `num_heads` heads that attend to the words before, and the LSTM's fields are unused. Matrices
    are multiplied in `dtype` ("float32" or "bfloat16"); parameters, cells, gates and the state are always float32.
    """

    input: Literal["characters", "words"] = "characters"
    vocab_size: int | None = None
    char_embedding_size: int = 16
    max_characters: int = 50
    filters: Sequence[Sequence[int]] = FILTERS
    num_highways: int = 2
    char_activation: Literal["relu", "tanh"] = "relu"
    token_projection: bool = True
    num_layers: int = 2
    cell_size: int = 4096
    projection_size: int = 512
    projection: bool = True
    skip_connections: bool = True
    cell_clip: float | None = 3.0
    proj_clip: float | None = 3.0
    dropout: float = 0.1
    tie_softmax: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    reader: Literal["lstm", "attention"] = "lstm"
    num_heads: int = 4

    ADDED: ClassVar[tuple[str, ...]] = ("reader", "num_heads")  # after the first runs

    def __str__(self) -> str:
        return show_config(self)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, (types, expected) = getattr(self, field.name), KINDS.get(field.type, (object, ""))
            none = value is None and type(None) in get_args(field.type)
            if not none and expected and (not isinstance(value, types) or isinstance(value, bool) != (types is bool)):
                raise ValueError(f"{field.name} is {value!r}; it must be {expected}")
        if isinstance(self.filters, str) or not all(_is_pair(pair) for pair in self.filters):
            raise ValueError(f"filters is {self.filters!r}; it holds pairs (width, number of filters), such as (3, 64)")
        # JSON has lists, which would make the configuration unhashable.
        object.__setattr__(self, "filters", tuple((width, number) for width, number in self.filters))
        check_choices(self)
        for name in ("char_embedding_size", "num_layers", "cell_size", "projection_size", "vocab_size"):
            if getattr(self, name) is not None and not 1 <= getattr(self, name) <= LARGEST:
                raise ValueError(f"{name} is {getattr(self, name)!r:.60}; it must be from 1 to {LARGEST:,}")
        for name in ("cell_clip", "proj_clip"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0, or None for no clipping")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; a dropout rate is at least 0 and below 1")
        if not self.projection and self.projection_size != self.cell_size:
            raise ValueError(
                f"projection is False, but projection_size is {self.projection_size} and cell_size {self.cell_size}: "
                "without a projection the cells are the output, so the two must be the same"
            )
        if self.reader == "attention" and (self.num_heads < 1 or self.projection_size % self.num_heads):
            raise ValueError(
                f"num_heads is {self.num_heads}; it must divide projection_size, {self.projection_size} here"
            )
        if self.input == "characters":
            self._check_characters()
        elif self.vocab_size is None:
            raise ValueError("input is 'words' but vocab_size is None; give the number of words (n_tokens_vocab)")

    def _check_characters(self) -> None:
        if self.tie_softmax:
            raise ValueError("tie_softmax needs input='words': characters have no word embedding to share")
        if self.num_highways < 0:
            raise ValueError(f"num_highways is {self.num_highways}; it must be at least 0")
        if self.max_characters < 3:
            raise ValueError(f"max_characters is {self.max_characters}; two are marks, so it must be at least 3")
        if self.max_characters > MOST_CHARACTERS:
            raise ValueError(f"max_characters is {self.max_characters:,}; at most {MOST_CHARACTERS:,} are possible")
        if not self.filters:
            raise ValueError("filters is empty; it holds pairs (width, number of filters), such as (3, 64)")
        for width, number in self.filters:
            if not 1 <= width <= self.max_characters or number < 1:
                raise ValueError(
                    f"filters has ({width}, {number}); a width is 1 to max_characters, {self.max_characters} here, "
                    "and there is at least 1 filter of it"
                )
        if not self.token_projection and self.num_filters != self.projection_size:
            raise ValueError(
                f"token_projection is False, but there are {self.num_filters} filters and projection_size is "
                f"{self.projection_size}: without a projection the filters' outputs are the token vectors, so the two "
                "must be the same"
            )

    @property
    def hidden_size(self) -> int:
        """The size of a word's vector in each layer: both directions side by side."""
        return 2 * self.width

    @property
    def width(self) -> int:
        """The width of one direction's vectors, half of `hidden_size`."""
        return self.projection_size

    @property
    def num_filters(self) -> int:
        """The number of filters of all widths together."""
        return sum(number for _, number in self.filters)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ElmoConfig":
        """Return the configuration of a released size (or "toy", for tests), with the fields in `changes` replaced."""
        return cls(**(choose_preset(name, PRESETS) | changes))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, where: str = "The options", **changes: Any) -> "ElmoConfig":
        """Return the configuration of the content of an `options.json`, with the fields in `changes` replaced.

        Raise on an option that is neither supported nor known to be harmless. The options do not tell whether a
        projection exists that changes no width: the original leaves it out, AllenNLP expects it. Give
        `projection=True` or `token_projection=True` if the weights have it.
        """
        values: dict[str, Any] = {"input": "characters" if "char_cnn" in options else "words"}
        problems = _unknown(options)
        parts_of_file = [("", options, TOP), ("lstm.", options.get("lstm"), LSTM)]
        if "char_cnn" in options:
            parts_of_file.append(("char_cnn.", options["char_cnn"], CHAR_CNN))
            if isinstance(options["char_cnn"], Mapping):
                problems += _number_of_characters(options["char_cnn"])
        for prefix, part, names in parts_of_file:
            if not isinstance(part, Mapping):
                problems.append(f"{prefix[:-1]} is {part!r}; it must be an object with {', '.join(names)}")
                continue
            for theirs, ours in names.items():
                try:
                    values[ours] = _value(part, theirs, ours, prefix)
                except ValueError as error:
                    problems.append(str(error))
        if problems:
            raise ValueError(f"{where} describe no ELMo that can be honoured:\n- " + "\n- ".join(problems))
        values["projection"] = values["projection_size"] != values["cell_size"]
        if "filters" in values:
            values["token_projection"] = sum(number for _, number in values["filters"]) != values["projection_size"]
        try:
            return cls(**(values | changes))
        except ValueError as error:
            named = ", ".join(
                f"{ours} is their {prefix}{theirs}"
                for prefix, _, parts in parts_of_file
                for theirs, ours in parts.items()
                if ours in str(error)
            )
            raise ValueError(f"{where}: {error}" + (f" ({named})" if named else "")) from None

    @classmethod
    def from_json(cls, path: str | Path, **changes: Any) -> "ElmoConfig":
        """Read an options file; see `from_options`.

        >>> ElmoConfig.from_json("tests/goldens/elmo_tiny/options.json").filters
        ((1, 4), (2, 8), (3, 12), (4, 16))
        """
        return cls.from_options(read_json(path), where=f"The options in {path}", **changes)

    def to_json(self, path: str | Path) -> None:
        """Write `to_options()`."""
        write_json(path, self.to_options())

    def to_options(self) -> dict[str, Any]:
        """Return the content of an `options.json` for AllenNLP, as in released files."""
        if self.reader != "lstm":
            raise ValueError(
                f"reader is {self.reader!r}: AllenNLP's files of ELMo have only LSTMs; keep the run itself"
            )
        options: dict[str, Any] = {"bidirectional": True, "dropout": self.dropout}
        options["lstm"] = {theirs: getattr(self, ours) for theirs, ours in LSTM.items()}
        if self.input == "characters":
            cnn = {theirs: getattr(self, ours) for theirs, ours in CHAR_CNN.items()}
            cnn["filters"] = [list(pair) for pair in self.filters]
            cnn["embedding"] = {"dim": cnn.pop("embedding.dim")}
            options["char_cnn"] = cnn | {"n_characters": max(NUM_CHARACTERS)}
        if self.vocab_size is not None:
            options["n_tokens_vocab"] = self.vocab_size
        if self.tie_softmax:
            options["share_embedding_softmax"] = True
        return options


def _value(part: Mapping[str, Any], theirs: str, ours: str, prefix: str) -> Any:
    *outer, name = theirs.split(".")
    for key in outer:
        part = part[key] if isinstance(part.get(key), Mapping) else {}
    value = part.get(name)
    if value is None and name in ABSENT:
        return ABSENT[name]
    shown = f"{prefix}{theirs} is {'missing' if value is None else repr(value)}"
    if ours == "filters":
        if isinstance(value, list | tuple) and all(_is_pair(pair) for pair in value):
            return tuple((width, number) for width, number in value)
        raise ValueError(f"{shown}; it must be a list of pairs [width, number of filters]")
    kind = next(field.type for field in dataclasses.fields(ElmoConfig) if field.name == ours)
    types, expected = KINDS.get(kind, (str, "a name"))
    if not isinstance(value, types) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{shown}; it must be {expected}")
    if expected == "a number" and abs(value) > 1e30:
        raise ValueError(f"{shown:.60}; it must be a number that can be computed with")
    return float(value) if expected == "a number" else value


def _is_pair(pair: Any) -> bool:
    is_whole = isinstance(pair, list | tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    return is_whole and len(pair) == 2


def _number_of_characters(char_cnn: Mapping[str, Any]) -> list[str]:
    number = char_cnn.get("n_characters")
    if number is None or (number in NUM_CHARACTERS and not isinstance(number, bool)):
        return []
    return [
        f"char_cnn.n_characters is {number!r}; it is {NUM_CHARACTERS[0]} in the options of a training run and "
        f"{NUM_CHARACTERS[1]} in the options of a released model"
    ]


def _unknown(options: Mapping[str, Any]) -> list[str]:
    embedding = options["char_cnn"].get("embedding") if isinstance(options.get("char_cnn"), Mapping) else None
    parts: list[tuple[str, Any, set[str]]] = [
        ("", options, {*TOP, "lstm", "char_cnn", "bidirectional", *TRAINING}),
        ("lstm.", options.get("lstm"), set(LSTM)),
        ("char_cnn.", options.get("char_cnn"), {*CHAR_CNN, "n_characters", "embedding"} - {"embedding.dim"}),
        ("char_cnn.embedding.", embedding, {"dim"}),
    ]
    problems = []
    for prefix, part, names in parts:
        for name in sorted(set(part) - names) if isinstance(part, Mapping) else []:
            near = nearest(name, sorted(names))  # without the prefix, which all have in common
            hint = f"; did you mean {prefix}{near}?" if near else ""
            problems.append(f"{prefix}{name} is {part[name]!r}, an option of unknown meaning{hint}")
    if options.get("bidirectional") not in (None, True):
        problems.append(
            f"bidirectional is {options['bidirectional']!r}; only true is supported: ELMo has both directions"
        )
    return problems
