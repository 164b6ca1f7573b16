"""The numbers that each field of a config may have: one table for all recipes, checked before anything is read.

A field is found by its path (`optimizer.clip`), by its group (`coefficients.*`), or by its last name (`batch_size`).
Relations between fields, and limits that depend on the data or the machine, are checked where they are known.
"""

import functools
import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.runs.config_files import list_fields, show_value

# The counter of steps has 32 bits, and a random key is made of 32 bits of the seed.
MOST, SEEDS = 2**31 - 1, 2**32 - 1
ROWS, SIZE, LENGTH, LAYERS, PROCESSES = 2**22, 2**20, 2**20, 10_000, 1_024


class Range(NamedTuple):
    """Numbers from `low` to `high`; `above_low` and `below_high` leave the bound itself out."""

    low: int | float
    high: int | float
    integers: bool = True
    above_low: bool = False
    below_high: bool = False
    note: str = ""

    def holds(self, value: Any) -> bool:
        """Return True for a number of the range; whole numbers are numbers, but True and False are not.

        >>> share = Range(0, 1, integers=False, below_high=True)
        >>> [share.holds(value) for value in (0, 0.5, 1.0, float("nan"), "0", True)]
        [True, True, False, False, False, False]
        """
        if isinstance(value, bool) or not isinstance(value, int if self.integers else int | float):
            return False
        low = self.low < value if self.above_low else self.low <= value
        return low and (value < self.high if self.below_high else value <= self.high)

    def __str__(self) -> str:
        """Return the range in words.

        >>> print(Range(1, 10_000))
        a whole number from 1 to 10,000
        >>> print(Range(0, 1e9, integers=False, above_low=True, note=", such as 1.0"))
        a number above 0 and at most 1e+09, such as 1.0
        """
        kind, low, high = "whole number" if self.integers else "number", _show(self.low), _show(self.high)
        first = f"above {low}" if self.above_low else f"from {low}"
        last = f"below {high}" if self.below_high else f"at most {high}" if self.above_low else high
        return f"a {kind} {first} {'and' if self.above_low else 'to'} {last}{self.note}"


def _show(bound: int | float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


COUNT, OPTIONAL_COUNT = Range(1, MOST), Range(0, MOST)
SIZES, SHARE = Range(1, SIZE), Range(0, 1, integers=False)
RATE = Range(0, 1, integers=False, below_high=True)  # of dropout, of masking
FACTOR = Range(0, 1e9, integers=False)
POSITIVE = Range(0, 1e9, integers=False, above_low=True)
LEARNING = Range(0, 1_000, integers=False, above_low=True)
NO_CLIP = Range(0, 1e9, integers=False, above_low=True, note=", such as 1.0; 1e9 clips nothing")

# A whole path decides before patterns, and the first pattern that fits a path, or its last name, before later ones.
RANGES: Mapping[str, Range] = {
    # The length of a run, and what happens when.
    "steps": COUNT,
    "epochs": Range(0, 1_000_000, integers=False, above_low=True),
    "adapt.epochs": Range(0, 1_000_000, integers=False),
    "lm.epochs": Range(0, 1_000_000, integers=False, note="; 0: no tuning of the language model"),
    "head_epochs": Range(0, 1_000_000, integers=False, above_low=True),
    "log_every": COUNT,
    "eval_every": OPTIONAL_COUNT,
    "eval_batches": COUNT,
    "checkpoint_every": OPTIONAL_COUNT,
    "keep": COUNT,
    "average": COUNT,
    "patience": OPTIONAL_COUNT,
    "stop_after_failures": COUNT,
    # Batches, processes and devices.
    "seed": Range(0, SEEDS),
    "batch_size": Range(1, ROWS),
    "long_batch_size": Range(0, ROWS, note="; 0: as batch_size"),
    "batch_warmup.rows": Range(1, ROWS),
    "batch_warmup.share": RATE,
    "accumulate": Range(1, ROWS),
    "workers": Range(0, PROCESSES),
    "mesh.data": Range(-1, SIZE, note="; -1: all remaining devices"),
    "mesh.*": SIZES,
    # Rows.
    "length": Range(1, LENGTH),
    "long_length": Range(1, LENGTH),
    "target_length": Range(1, LENGTH),
    "max_length": Range(0, LENGTH),
    "stride": Range(1, LENGTH),
    "question_length": Range(1, LENGTH),
    "longest_answer": Range(1, LENGTH),
    "long_share": SHARE,
    "short_share": SHARE,
    "causal_share": RATE,
    "spread": Range(0, LENGTH),
    "sequences": Range(1, ROWS),
    "copies": OPTIONAL_COUNT,
    "share": Range(0, 1, integers=False, above_low=True),
    "masking.rate": Range(0, 1, integers=False, above_low=True, below_high=True),
    "masking.end_rate": Range(0, 1, integers=False, above_low=True, below_high=True),
    "masking.rates": Range(2, MOST),
    "masking.predictions": Range(1, LENGTH),
    "masking.split": SHARE,
    "noise.span": POSITIVE,
    "noise.*": SHARE,
    # The optimizer.
    "optimizer.b1": RATE,
    "optimizer.b2": RATE,
    "optimizer.eps": Range(0, 1, integers=False, above_low=True),
    "optimizer.clip": NO_CLIP,
    "optimizer.decay": Range(0, 1_000, integers=False),
    "optimizer.warmup": Range(0, MOST, integers=False, note=": steps, or below 1 a share of them"),
    "optimizer.long_warmup": Range(0, MOST, integers=False, note=": steps, or below 1 a share of them"),
    "optimizer.cooldown": Range(0, MOST, integers=False, above_low=True, note=": steps, or below 1 a share of them"),
    "optimizer.long_learning_rate": Range(0, 1_000, integers=False, note="; 0: no schedule of its own"),
    "optimizer.gradient_scale": POSITIVE,
    "learning_rate": LEARNING,
    "layer_decay": Range(0, 1, integers=False, above_low=True),
    # Documents, and the language model below their classifier.
    "documents.part": Range(1, LENGTH),
    "documents.gradient_words": Range(0, MOST, note="; 0: all"),
    "documents.sizes": SIZES,
    "add_words": Range(0, MOST, note="; 0: none"),
    "*drop_factor": Range(0, 1_000, integers=False),
    # Losses and heads.
    "coefficients.*": FACTOR,
    "smoothing": RATE,
    "temperature": POSITIVE,
    "negatives": OPTIONAL_COUNT,
    "row_negatives": Range(1, SIZE),
    "window": Range(1, LENGTH),
    "suffix": Range(0, 20, note=" letters; 0: no such feature"),
    "sample": RATE,
    "min_count": Range(1, MOST),
    "model.buckets": Range(1, MOST),
    "model.shortest": Range(1, 1_000),
    "model.longest": Range(1, 1_000),
    "lm_weight": FACTOR,
    "lora.rank": Range(1, SIZE),
    "lora.alpha": POSITIVE,
    "mix_l2": FACTOR,
    "sentences.scale": POSITIVE,
    "sentences.margin": FACTOR,
    "sentences.top_score": FACTOR,
    "translations": OPTIONAL_COUNT,
    "beams": Range(1, 1_024),
    "model.beams": Range(1, 1_024),
    "model.max_new": Range(1, LENGTH),
    "model.min_new": Range(0, LENGTH),
    "model.no_repeat_ngram_size": Range(0, LENGTH),
    "model.length_penalty": Range(-100, 100, integers=False),
    "length_penalty": Range(0, 100, integers=False),
    # Models. Where a size is also limited by another, the model's configuration says so.
    "*dropout": RATE,
    "*lstm_layers": Range(0, LAYERS),
    "*_layers": Range(1, LAYERS),
    "model.num_highways": Range(0, LAYERS),
    "model.max_characters": Range(3, 10_000),
    "model.filters": SIZES,
    "model.max_positions": Range(1, LENGTH),
    "model.*_eps": Range(0, 1, integers=False, above_low=True, note=", such as 1e-12"),
    "model.initializer_range": Range(0, 1_000, integers=False),
    "model.initializer_cut": POSITIVE,
    "model.*theta": Range(0, 1e12, integers=False, above_low=True),
    "model.*_clip": POSITIVE,
    "model.generator_size": Range(0, 1, integers=False, above_low=True),
    "model.generator_depth": Range(0, 1, integers=False, above_low=True),
    "model.embedding_size": Range(0, SIZE, note="; 0, where a family allows it: as the layers"),
    "model.type_vocab_size": Range(0, SIZE, note="; 0, where a family allows it: no types"),
    "model.position_buckets": Range(0, LENGTH, note="; 0: none"),
    "model.max_relative_positions": Range(0, LENGTH, note="; 0: max_positions"),
    "model.conv_kernel_size": Range(0, 1_023, note="; 0: no convolution"),
    "model.conv_groups": SIZES,
    "model.relative_buckets": SIZES,
    "model.groups": Range(1, LAYERS),
    "model.layers_per_group": Range(1, LAYERS),
    "word_size": Range(0, SIZE),
    "toyworld.vocab_size": Range(4, 10_000_000),
    "*_size": SIZES,
    "*_heads": SIZES,
    "model.local_attention": Range(1, LENGTH),
    # The toy world.
    "toyworld.topics": Range(1, 10_000),
    "toyworld.words": Range(1, 10_000),
    "toyworld.documents": Range(1, 1_000_000_000),
    "toyworld.heldout": RATE,
}


def find_range(name: str) -> Range | None:
    """Return the range of a field, or None if the table has none.

    >>> print(find_range("optimizer.learning_rate"))
    a number above 0 and at most 1,000
    >>> find_range("model.activation") is None
    True
    """
    pattern = find_pattern(name)
    return None if pattern is None else RANGES[pattern]


@functools.cache
def find_pattern(name: str) -> str | None:
    """Return the pattern of the table that decides about a field, or None.

    >>> find_pattern("model.num_heads")
    '*_heads'
    """
    pattern_of_name = name if name in RANGES else next((pattern for pattern in RANGES if _matches(name, pattern)), None)
    # The stage `lm` of a fine-tuning has fields of a pretraining.
    return find_pattern(name[3:]) if pattern_of_name is None and name.startswith("lm.") else pattern_of_name


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or ("." not in pattern and fnmatchcase(name.rpartition(".")[2], pattern))


def check_field(name: str, value: Any, prefix: str = "config.") -> None:
    """Raise ValueError for a number outside of a field's range; fields without a range hold any finite number.

    >>> check_field("batch_size", -1)
    Traceback (most recent call last):
    ...
    ValueError: config.batch_size=-1: expected a whole number from 1 to 4,194,304
    """
    expected = find_range(name)
    for number in _numbers(value):
        fine = abs(number) < math.inf if expected is None else expected.holds(number)
        if not fine:
            shown = "a finite number" if expected is None else expected
            raise ValueError(f"{prefix}{name}={show_value(value)}: expected {shown}")


def _numbers(value: Any) -> Iterator[int | float]:
    """Yield the numbers of a field: its value, or those inside of its lists."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def check_fields(config: ConfigDict, prefix: str = "config.") -> None:
    """Raise ValueError for the first field of a config whose number is outside of its range.

    >>> check_fields(ConfigDict({"steps": 10, "optimizer": {"clip": float("nan")}}))
    Traceback (most recent call last):
    ...
    ValueError: config.optimizer.clip=nan: expected a number above 0 and at most 1e+09, such as 1.0; 1e9 clips nothing
    """
    for name, value in list_fields(config):
        check_field(name, value, prefix)
