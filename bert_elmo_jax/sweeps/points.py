"""A point of a sweep: one run of a program, as a command starts it, under a name of its own.

What a point *is* does not hang on its name or on where it lies: its identity is a hash of the program, of every field
of its config that can change a number, of the points that it begins with, and of the names of its data files. So two
sweeps of one working directory share what they have in common, and a changed definition runs again what it changes.
"""

import contextlib
import functools
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import lock
from bert_elmo_jax.runs.config_files import CONFIGS, NAMED, PROGRAMS, check_program, config_of, fields_of, shown

# Flags of a program that are no fields of its config.
FLAGS = {"pretrain_bert": ("init",), "pretrain_elmo": ("init",), "finetune": ("init", "tokenizer")}
# Where a run computes, what it says on the way and where it keeps what can be made again: no number hangs on these.
COMFORT = ("mesh", "workers", "log_every", "checkpoint_every", "keep", "cache")
DONE = {"finetune": "result.json", "pretrain_bert": "report.html", "pretrain_elmo": "report.html"}  # written last


@dataclass(frozen=True)
class File:
    """A file or a folder of data, by its name below `--data`; what a sweep has `made` lies in its working directory.

    >>> File("squad/train-v1.1.json").name
    'squad/train-v1.1.json'
    """

    name: str
    made: bool = False


@dataclass(frozen=True, eq=False)
class Point:
    """A run: `settings` are fields and flags beside those of the config's file, or a Point, a Step or a File for one.

    >>> bert = Point("bert", "pretrain_bert", "bert_toy", {"steps": 100})
    >>> tagger = Point("tagger", "finetune", "finetune", {"init": bert, "task": "sst2", "train": File("train.tsv")})
    >>> [point.name for point in tagger.needs], tagger.identity == bert.identity
    (['bert'], False)
    >>> Point("bert", "pretrain_bert", "bert_toy", {"stepz": 100})
    Traceback (most recent call last):
    ValueError: bert: the config bert_toy has no field 'stepz'; did you mean steps?
    """

    name: str
    program: str
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.resolved  # noqa: B018 -- raises what is wrong with it

    @property
    def needs(self) -> list["Point"]:
        """The points whose results it begins with."""
        needs = (value.point if isinstance(value, Step) else value for value in self.settings.values())
        return [value for value in needs if isinstance(value, Point)]

    @property
    def files(self) -> list[File]:
        """The data that it reads."""
        return [value for value in self.settings.values() if isinstance(value, File)]

    @functools.cached_property
    def resolved(self) -> ConfigDict:
        """Its whole config; what is a point or a file is told by what names it everywhere."""
        if self.program not in PROGRAMS:
            known = ", ".join(PROGRAMS)
            raise ValueError(
                f"{self.name}: there is no program {self.program!r}; there are {known}"
                + did_you_mean(self.program, PROGRAMS)
            )
        try:
            config, _ = config_of(str(config_path(self.config)))
            check_program(self.config, config, self.program)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.name}: {error}") from None
        for name, value in self.settings.items():
            if name in FLAGS[self.program]:
                if not isinstance(value, str | Path | Point | Step | File):
                    raise ValueError(
                        f"{self.name}: {name}={value!r}, expected a path or a point; of several runs name one: runs[0]"
                    )
                continue
            fields = dict(fields_of(config))
            if name not in fields:
                hint = did_you_mean(name, [*fields, *FLAGS[self.program]])
                raise ValueError(f"{self.name}: the config {self.config} has no field {name!r}{hint}")
            told = _told(value)
            # A config takes a text for a tuple and a truth for a number; nobody means that.
            usual = fields[name]
            fits = usual is None or isinstance(told, bool) == isinstance(usual, bool)
            try:
                if not fits or (isinstance(usual, tuple) and not isinstance(told, tuple | list)):
                    raise TypeError
                config.update_from_flattened_dict({name: told})
            except (TypeError, ValueError):
                raise ValueError(f"{self.name}: {name}={value!r}, expected a value like {usual!r}") from None
        return config

    @functools.cached_property
    def identity(self) -> str:
        """Eight letters and digits that two points have in common when they are the same run."""
        fields = {name: value for name, value in fields_of(self.resolved) if name.partition(".")[0] not in COMFORT}
        flags = {name: _told(value) for name, value in self.settings.items() if name in FLAGS[self.program]}
        told = json.dumps([self.program, fields, flags], sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(told.encode()).hexdigest()[:8]


@dataclass(frozen=True, eq=False)
class Step:
    """What a pretraining was after so many of its steps: one of the checkpoints that it keeps.

    >>> bert = Point("bert", "pretrain_bert", "bert_toy", {"steps": 300, "checkpoint_every": 100, "keep": 2})
    >>> Step(bert, 100)
    Traceback (most recent call last):
    ValueError: bert keeps no checkpoint of step 100: it keeps 2, one every 100 of 300 steps
    """

    point: Point
    step: int

    def __post_init__(self) -> None:
        if not isinstance(self.point, Point) or self.point.program == "finetune" or type(self.step) is not int:
            raise ValueError(f"Step({self.point!r}, {self.step!r}): expected a pretraining and a whole number of steps")
        asked = self.point.resolved
        if asked.checkpoint_every < 1:
            raise ValueError(f"{self.point.name}: checkpoint_every={asked.checkpoint_every}, expected 1 or more")
        every, last = asked.checkpoint_every, asked.steps
        kept = [last, *range(last - (last % every or every), 0, -every)][: asked.keep]
        if self.step not in kept:
            raise ValueError(
                f"{self.point.name} keeps no checkpoint of step {self.step}: it keeps {asked.keep}, one every {every} "
                f"of {last} steps"
            )


@dataclass(frozen=True)
class Places:
    """Where things lie: everything that is made in one working directory, data that are given below another."""

    workdir: Path
    data: Path | None = None
    _runs: dict[str, Path] = field(default_factory=dict, repr=False)  # that are there
    _listed: dict[int, dict[str, list[Path]]] = field(default_factory=dict, repr=False)

    def run(self, point: Point) -> Path:
        """The run directory of a point: one that is there under another name, or a new one."""
        if point.identity not in self._runs:
            there = self._there().get(point.identity)
            if not there:
                return self.workdir / "points" / f"{_slug(point.name)}-{point.identity}"
            self._runs[point.identity] = min(there, key=lambda run: (not (run / DONE[point.program]).is_file(), run))
        return self._runs[point.identity]

    def claim(self, point: Point) -> Path:
        """The run directory, made where it is missing: sweeps that begin the same run at once agree on its name."""
        with self.locked():
            self._listed.clear()
            run = self.run(point)
            run.mkdir(parents=True, exist_ok=True)
        return run

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other sweep of the working directory meanwhile."""
        self.workdir.mkdir(parents=True, exist_ok=True)
        with lock(self.workdir / "points.lock", wait=True):
            yield

    def _there(self) -> dict[str, list[Path]]:
        """All run directories by identity, listed again when their folder has changed."""
        folder = self.workdir / "points"
        stamp = folder.stat().st_mtime_ns if folder.is_dir() else 0
        if stamp not in self._listed:
            self._listed.clear()
            found = self._listed[stamp] = {}
            for run in folder.iterdir() if stamp else ():
                found.setdefault(run.name.rpartition("-")[2], []).append(run)
        return self._listed[stamp]

    def file(self, file: File) -> Path:
        """Where a file of data is to be found."""
        root = self.workdir / "tasks" if file.made else self.data
        return (root or Path("DATA")) / file.name

    def words(self, point: Point) -> list[str]:
        """What stands behind the program in a point's command."""
        config = config_path(point.config)
        here = config.relative_to(Path.cwd()) if config.is_relative_to(Path.cwd()) else config
        named = (*FLAGS[point.program], *(NAMED if point.program == "finetune" else ()))
        words = [f"--config={here}"]
        for name, value in point.settings.items():
            text = shown(self.written(value))
            words.append(f"--{name}={text}" if name in named else f"--config.{name}={text}")
        shared = "cache" in point.resolved and isinstance(point.settings.get("encoder"), Point)
        if shared and not point.resolved.adapt.epochs:  # an adapted encoder is the run's own
            words.append(f"--config.cache={self.workdir / 'vectors' / _texts(point)}")
        return [*words, f"--workdir={self.run(point)}"]

    def command(self, point: Point) -> str:
        """The command that makes a point.

        >>> bert = Point("bert", "pretrain_bert", "bert_toy", {"steps": 100})
        >>> Places(Path("/runs")).command(bert).split()[2:5]
        ['experiments.pretrain_bert', '--config=experiments/configs/bert_toy.py', '--config.steps=100']
        """
        return f"python -m experiments.{point.program} {shlex.join(self.words(point))}"

    def is_done(self, point: Point) -> bool:
        """Whether a point needs nothing more: the last thing that its program writes is there."""
        return (self.run(point) / DONE[point.program]).is_file()

    def written(self, value: Any) -> Any:
        """A setting's value as its program reads it."""
        if isinstance(value, Point):
            return str(self.run(value))
        if isinstance(value, Step):
            return str(self.run(value.point) / "checkpoints" / str(value.step))
        return str(self.file(value)) if isinstance(value, File) else _told(value)


def config_path(config: str) -> Path:
    """The file of a config that is named by its name, or by its path.

    >>> config_path("bert_toy").name
    'bert_toy.py'
    """
    return Path(config).absolute() if config.endswith(".py") else CONFIGS / f"{config}.py"


def in_order(points: list[Point]) -> Iterator[Point]:
    """All points and those that they need, each once, what is needed first."""
    seen: set[str] = set()

    def visit(point: Point) -> Iterator[Point]:
        if point.identity not in seen:
            seen.add(point.identity)
            for need in point.needs:
                yield from visit(need)
            yield point

    for point in points:
        yield from visit(point)


def _texts(point: Point) -> str:
    """What names the vectors that a frozen encoder has for a task's texts: all runs that read the same share them."""
    read = ("network", "encoder", "task", "text", "pair", "label", "encoding", "train", "dev", "share", "max_length")
    fields = [str(point.resolved[name]) for name in read if name in point.resolved]
    return hashlib.sha256("\n".join(fields).encode()).hexdigest()[:12]


def _told(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return tuple(map(_told, value))
    if isinstance(value, Point):
        return f"point {value.identity}"
    if isinstance(value, Step):
        return f"step {value.step} of point {value.point.identity}"
    return f"file {value.name}" if isinstance(value, File) else value


def _slug(name: str) -> str:
    slug = re.sub(r"[^\w.+=]+", "-", name).strip("-")
    return slug.encode()[:160].decode(errors="ignore")  # a file's name has 255 bytes at most, of which more come
