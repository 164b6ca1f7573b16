"""What is searched: fields of a config, each with a range of numbers or with a few values."""

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.runs.config_files import fields_of, shown

# Up to the next comma, but for those within parentheses or quotes.
VALUE = re.compile(r"""(?:^|,)(\((?:[^()]|\([^()]*\))*\)|"[^"]*"|'[^']*'|[^,]*)""")
SUCH_AS = "such as 'optimizer.learning_rate=1e-5..1e-3,log;dropout=0.0..0.5;batch_size=16,32'"


@dataclass(frozen=True)
class Range:
    """Numbers from the lowest to the highest, both among them; `log`: drawn so that each tenfold counts alike."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def draw(self, trial: Any, name: str) -> float:
        """A trial's value."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Values:
    """A few values, of which none is nearer to another."""

    values: tuple[Any, ...]

    def draw(self, trial: Any, name: str) -> Any:
        """A trial's value."""
        return trial.suggest_categorical(name, self.values)


Space = dict[str, Range | Values]


def space_of(over: str, config: ConfigDict) -> Space:
    """The fields that --over names, and what they may be.

    >>> space_of("epochs=2..4;optimizer.clip=1", ConfigDict({"epochs": 3.0, "optimizer": {"clip": 1.0}}))
    {'epochs': Range(low=2.0, high=4.0, log=False, whole=False), 'optimizer.clip': Values(values=(1.0,))}
    >>> space_of("masking.split=(0.8,0.1,0.1),(1,0,0)", ConfigDict({"masking": {"split": (0.8, 0.1, 0.1)}}))
    {'masking.split': Values(values=('(0.8, 0.1, 0.1)', '(1, 0, 0)'))}
    >>> space_of("optimiser.clip=1", ConfigDict({"optimizer": {"clip": 1.0}}))
    Traceback (most recent call last):
    ValueError: --over names 'optimiser.clip', which is no field of the config; did you mean optimizer.clip?
    """
    found: Space = {}
    fields = dict(fields_of(config))
    for part in filter(None, map(str.strip, over.split(";"))):
        name, given, text = part.partition("=")
        if not given or not text:
            raise ValueError(f"--over: {part!r} says no range and no values, {SUCH_AS}")
        if name not in fields:
            raise ValueError(f"--over names {name!r}, which is no field of the config{did_you_mean(name, fields)}")
        if name in found:
            raise ValueError(f"--over names {name} twice")
        found[name] = _of_field(name, text, fields[name])
    if not found:
        raise ValueError(f"--over=… is needed: the fields to search, {SUCH_AS}")
    return found


def words_of(values: dict[str, Any]) -> list[str]:
    """Drawn values as flags.

    >>> words_of({"optimizer.learning_rate": 0.0001, "context": True})
    ['--config.optimizer.learning_rate=0.0001', '--config.context=true']
    """
    return [f"--config.{name}={shown(value)}" for name, value in values.items()]


def _of_field(name: str, text: str, usual: Any) -> Range | Values:
    first, *rest = VALUE.findall(text)
    if ".." in first and first[0] not in "\"'":
        low, _, high = first.partition("..")
        bounds = _values(name, (low, high), usual)
        if isinstance(usual, bool | str) or rest not in ([], ["log"]):
            raise ValueError(f"--over: {name}={text}, expected values as a,b, or numbers as low..high or low..high,log")
        if not bounds[0] < bounds[1] or (rest and bounds[0] <= 0):
            least = " above 0" if rest else ""
            raise ValueError(f"--over: {name}={text}, expected a lower number{least} and a higher one")
        return Range(bounds[0], bounds[1], log=bool(rest), whole=isinstance(usual, int))
    return Values(tuple(_values(name, (first, *rest), usual)))


def _values(name: str, texts: Sequence[str], usual: Any) -> list[Any]:
    kind: Any = float if usual is None else type(usual)
    try:
        if kind is bool:
            return [{"true": True, "false": False}[text] for text in texts]
        if kind is tuple:  # as it is written behind a flag: optuna keeps no tuples
            read = [ast.literal_eval(text) for text in texts]
            if not all(isinstance(value, tuple) for value in read):
                raise ValueError
            return list(map(shown, read))
        if kind is str:
            return [text[1:-1] if text[:1] in ("'", '"') and text[:1] == text[-1:] else text for text in texts]
        if kind not in (int, float):
            raise ValueError
        values = [kind(text) for text in texts]
    except (ValueError, KeyError, SyntaxError):
        raise ValueError(f"--over: {name}={','.join(texts)}, expected values like {shown(usual)!r}") from None
    if kind is float and not all(map(math.isfinite, values)):
        raise ValueError(f"--over: {name}={','.join(texts)}, expected finite numbers")
    return values
