"""A point of a sweep: one run of a program, with its own name and with an identity that does not depend on the name.

The identity is a hash of the program, of every config field that can change a number, of the points that the run
begins with, and of the names of its data files. So two sweeps in one working directory share their common points, and
a changed definition reruns only what it changes.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.runs.config_files import check_program, list_fields, read_config, set_field, show_value
from bert_elmo_jax.runs.with_network import ADDED

# The flags of each program that are not fields of its config.
FLAGS = {"pretrain": ("init", "parallel"), "finetune": ("init", "tokenizer", "seeds")}
# Fields that later versions added, with the values that they had before: left out where they have these, so that
# finished runs keep their identity.
LATER: Mapping[str, Any] = {
    "compute": None, "remat": None, "attention_dropout": None, "documents.pooling": "last+max+mean", **ADDED
}  # fmt: skip
# Fields that change no number: where a run computes, what it reports, and what it keeps. `checkpoint_every` changes
# the model of a run that averages its last checkpoints.
COMFORT = ("mesh", "workers", "log_every", "checkpoint_every", "keep", "cache")
# Settings whose texts may name files, folders or models of this machine.
PATHS = (
    "init", "tokenizer", "preset", "teacher", "encoder", "backward", "vectors", "character_vectors", "data",
    "unlabelled", "train", "dev", "test",
)  # fmt: skip


@dataclass(frozen=True)
class File:
    """A data file or folder, by its name below `--data`; the sweep itself makes the files that are `made`."""

    name: str
    made: bool = False


@dataclass(frozen=True, eq=False)
class Point:
    """A run of a program on a config such as "bert:toy", the recipe `toy` of `bert`, or "my_recipes.py:mine".

    `settings` are fields and flags by name. A value may be a Point, a Step or an Adapted (the run, its checkpoint or
    its adapted language model to begin with), a File, or a list of Files.

    >>> bert = Point("bert", "pretrain", "bert:toy", {"steps": 100})
    >>> head = Point("head", "finetune", "finetune", {"init": bert, "task": "sst2", "train": File("train.tsv")})
    >>> [point.name for point in head.needs], head.identity == bert.identity
    (['bert'], False)
    """

    name: str
    program: str
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.resolved  # noqa: B018 -- raises on contradictory settings

    @property
    def beginnings(self) -> dict[str, "Point"]:
        """The points whose results it begins with, by setting."""
        begin = {name: getattr(value, "point", value) for name, value in self.settings.items()}
        return {name: value for name, value in begin.items() if isinstance(value, Point)}

    @property
    def needs(self) -> list["Point"]:
        """The points whose results it begins with."""
        return list(self.beginnings.values())

    @property
    def files(self) -> list[File]:
        """The data it reads from `--data`."""
        return [each for value in self.settings.values() for each in _as_list(value) if isinstance(each, File)]

    def sources(self, *names: str) -> "list[File | str]":
        """Return the Files of its settings, and the texts of PATHS; with `names`, of these settings alone."""
        fields: dict[str, Any] = {**dict(self.resolved.items()), **self.settings}
        sources: list[File | str] = []
        for name in names or dict.fromkeys((*PATHS, *self.settings)):
            for value in _as_list(fields.get(name)):
                if isinstance(value, File):
                    sources.append(value)
                elif name in PATHS and value and isinstance(value, str | Path):
                    sources.append(str(value))
        return sources

    @functools.cached_property
    def resolved(self) -> ConfigDict:
        """Its whole config, with points and files replaced by texts that identify them."""
        if self.program not in FLAGS:
            hint = did_you_mean(self.program, FLAGS)
            raise ValueError(f"{self.name}: there is no program {self.program!r}; use {' or '.join(FLAGS)}{hint}")
        try:
            config, _ = read_config(self.config)
            check_program(self.config, config, self.program)
            fields = dict(list_fields(config))
            for name, value in self.settings.items():
                if name in FLAGS[self.program]:
                    if not isinstance(
                        value, (list, tuple) if name == "seeds" else (str, Path, Point, Step, Adapted, File)
                    ):
                        raise ValueError(
                            f"{name}={value!r}, expected a path or a point; of several runs name one: runs[0]"
                        )
                elif name not in fields:
                    hint = did_you_mean(name, [*fields, *FLAGS[self.program]])
                    raise ValueError(f"the config {self.config} has no field {name!r}{hint}")
                else:
                    if isinstance(value, list | tuple) and any(isinstance(v, Point | Step | Adapted) for v in value):
                        raise ValueError(f"{name}={value!r}, expected one point, such as {name}=runs[0]")
                    set_field(config, name, show_value(identify(value)), fields)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.name}: {error}") from None
        return config

    @functools.cached_property
    def identity(self) -> str:
        """Eight letters and digits that are equal for equal runs."""
        comfort = set(COMFORT)
        if (self.resolved.get("average") or 1) > 1:
            comfort.remove("checkpoint_every")
        fields = {
            name: value
            for name, value in list_fields(self.resolved)
            if name.partition(".")[0] not in comfort and not (name in LATER and value == LATER[name])
        }
        flags = {name: identify(value) for name, value in self.settings.items() if name in FLAGS[self.program]}
        text = json.dumps([self.program, fields, flags], sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True, eq=False)
class Step:
    """A checkpoint of a pretraining, by the number of its step."""

    point: Point
    step: int

    def __post_init__(self) -> None:
        if not isinstance(self.point, Point) or self.point.program != "pretrain" or type(self.step) is not int:
            raise ValueError(f"Step({self.point!r}, {self.step!r}): expected a pretraining and a whole number of steps")
        config = self.point.resolved
        if config.checkpoint_every < 1:
            raise ValueError(f"{self.point.name}: checkpoint_every={config.checkpoint_every}, expected 1 or more")
        every, last = config.checkpoint_every, config.steps
        steps = [last, *range(last - (last % every or every), 0, -every)][: config.keep]
        if self.step not in steps:
            keeps = f"it keeps {config.keep}, one every {every} of {last} steps"
            raise ValueError(f"{self.point.name} keeps no checkpoint of step {self.step}: {keeps}")


@dataclass(frozen=True, eq=False)
class Adapted:
    """The language model that a run of `finetune` adapts to its task's texts: several runs may begin with it.

    >>> lm = Point("lm", "pretrain", "awd_lstm:toy")
    >>> tuned = Point("tuned", "finetune", "ulmfit", {"init": lm, "task": "trec", "train": File("train.txt")})
    >>> Point("other", "finetune", "ulmfit", {"init": Adapted(tuned), "lm.epochs": 0.0}).needs == [tuned]
    True
    """

    point: Point

    def __post_init__(self) -> None:
        if not isinstance(self.point, Point):
            raise ValueError(f"Adapted({self.point!r}): expected a point, such as one of add.runs(…)")
        config = self.point.resolved
        if not any(config[stage].epochs for stage in ("lm", "adapt") if stage in config):
            raise ValueError(
                f"{self.point.name} adapts no language model: set its lm.epochs (ulmfit) or adapt.epochs (networks)"
            )


def sort_by_needs(points: list[Point]) -> list[Point]:
    """Return all points and the points they need, each once, needs first."""
    by_identity: dict[str, Point] = {}
    for point in points:
        for each in (*sort_by_needs(point.needs), point):
            by_identity.setdefault(each.identity, each)
    return list(by_identity.values())


def identify(value: Any) -> Any:
    """Return a setting's value with points and files replaced by texts that identify them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Point):
        return f"point {value.identity}"
    if isinstance(value, Step):
        return f"step {value.step} of point {value.point.identity}"
    if isinstance(value, Adapted):
        return f"adapted of point {value.point.identity}"
    if isinstance(value, File):
        return f"file {value.name}"
    return tuple(map(identify, value)) if isinstance(value, list | tuple) else value


def record_name(source: File | str) -> str:
    """Return the name of a File, or of a text that names paths, in the record of hashes."""
    return source.name if isinstance(source, File) else f"path {source}"


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
