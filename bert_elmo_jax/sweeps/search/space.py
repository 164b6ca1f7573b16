"""The search space: fields of a config, each with a range of numbers or a few values."""

import math
from dataclasses import dataclass
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.runs.config_files import list_fields, parse_value, parse_values, show_value

SUCH_AS = "such as 'optimizer.learning_rate=1e-5..1e-3,log;dropout=0.0..0.5;batch_size=16,32'"


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; with `log`, every power of ten is equally likely."""

    low: int | float
    high: int | float
    log: bool = False
    whole: bool = False

    def draw(self, trial: Any, name: str) -> float:
        """Return a trial's value."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Values:
    """A few values without an order."""

    values: tuple[Any, ...]

    def draw(self, trial: Any, name: str) -> Any:
        """Return a trial's value."""
        return trial.suggest_categorical(name, self.values)


Space = dict[str, Range | Values]


def read_space(over: str, config: ConfigDict) -> Space:
    """Return the search space that --over describes."""
    space: Space = {}
    fields = dict(list_fields(config))
    for part in filter(None, map(str.strip, over.split(";"))):
        name, given, text = part.partition("=")
        if not given or not text:
            raise ValueError(f"--over: {part!r} has no range and no values; expected text {SUCH_AS}")
        if name not in fields:
            raise ValueError(f"--over names {name!r}, but the config has no such field{did_you_mean(name, fields)}")
        if name in space:
            raise ValueError(f"--over names {name} twice")
        try:
            space[name] = _read_range(config, name, text) or _read_values(config, name, text)
        except ValueError as error:
            raise ValueError(f"--over: {error}") from None
    if not space:
        raise ValueError(f"--over=… is needed: the fields to search, {SUCH_AS}")
    return space


def _read_range(config: ConfigDict, name: str, text: str) -> Range | None:
    first, *rest = text.split(",")
    low, dots, high = first.partition("..")
    if not dots or low[:1] in ("'", '"', "("):
        return None
    bounds = [parse_value(config, name, bound) for bound in (low, high)]
    if not all(type(bound) in (int, float) for bound in bounds) or rest not in ([], ["log"]):
        raise ValueError(f"{name}={text}: expected values as a,b, or numbers as low..high or low..high,log")
    if not all(map(math.isfinite, bounds)) or not bounds[0] < bounds[1] or (rest and bounds[0] <= 0):
        raise ValueError(f"{name}={text}: expected {'positive' if rest else 'finite'} numbers, the lower one first")
    return Range(bounds[0], bounds[1], log=bool(rest), whole=type(bounds[0]) is int)


def _read_values(config: ConfigDict, name: str, text: str) -> Values:
    values = parse_values(config, name, text)
    if not all(math.isfinite(value) for value in values if isinstance(value, float)):
        raise ValueError(f"{name}={text}: expected finite numbers")
    # optuna stores no tuples, so these are kept as text.
    simple = (bool, int, float, str)
    return Values(tuple(value if isinstance(value, simple) else show_value(value) for value in values))
