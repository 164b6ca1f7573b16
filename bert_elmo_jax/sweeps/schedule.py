"""The order in which points run: what they need first, as many at a time as there is room for, failures again."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from bert_elmo_jax.files import is_locked, write_json
from bert_elmo_jax.runs.start_cost import DEVICE, UNHEARD
from bert_elmo_jax.sweeps.forks import Ended, Launch, Runner
from bert_elmo_jax.train.run_guard import REFUSED

POINT, LOG = "point.json", "log.txt"
TICK = 0.5  # seconds between two looks at everything
LAST, WIDEST = 12, 400  # lines of a log that a failure is reported with, and characters of each
END = 1 << 16  # bytes of a log that are looked at


class Runnable(Protocol):
    """What can be run: a point of a sweep, or a part of the quickstart."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def identity(self) -> str:
        """What it is known by."""

    @property
    def program(self) -> str:
        """The module of `experiments` that is started."""

    @property
    def needs(self) -> "Sequence[Runnable]":
        """What must be done before."""


Run = TypeVar("Run", bound=Runnable)
To = TypeVar("To", bound=Runnable, contravariant=True)


class Where(Protocol[To]):
    """Where runs lie and how they are started; `points.Places` says it of points."""

    def run(self, point: To, /) -> Path:
        """The run directory."""

    def claim(self, point: To, /) -> Path:
        """The run directory, made where it is missing."""

    def words(self, point: To, /) -> list[str]:
        """What stands behind the program."""

    def command(self, point: To, /) -> str:
        """As it is typed."""

    def is_done(self, point: To, /) -> bool:
        """Whether it needs nothing more."""


@dataclass
class State(Generic[Run]):
    """What has become of each point, by its identity."""

    points: Sequence[Run]
    running: dict[str, float] = field(default_factory=dict)  # since when
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # why
    blocked: dict[str, str] = field(default_factory=dict)  # by which point's name
    held: set[str] = field(default_factory=set)  # by a process of an earlier start, which is saving
    tries: dict[str, int] = field(default_factory=dict)
    stopping: bool = False

    @property
    def left(self) -> list[Run]:
        """Points of which nothing is known yet, and that are not running."""
        ended = {*self.running, *self.done, *self.failed, *self.blocked}
        return [point for point in self.points if point.identity not in ended]


def run_points(
    points: Sequence[Run],
    places: Where[Run],
    runner: Runner,
    *,
    retries: int = 1,
    changed: Callable[[State[Run]], object] = lambda state: None,
    tick: Callable[[State[Run]], object] = lambda state: None,
    say: Callable[[str], object] = lambda line: None,
    stop: Callable[[], int] = lambda: 0,
) -> State[Run]:
    """Run all points that are not done; `stop` tells how often it was asked to end early.

    `changed` is called whenever a point is done or has failed, `tick` every half second.
    """
    state = State(points, done={point.identity for point in points if places.is_done(point)})
    of = {point.identity: point for point in points}
    changed(state)
    asked = 0
    while state.running or (state.left and not state.stopping):
        if not state.stopping:
            _start_what_can(state, places, runner, say)
        tick(state)
        for ended in runner.wait(TICK):
            _note(of[ended.key], ended, state, places, retries, say)
            changed(state)
        if (times := stop()) > asked:
            asked = times
            state.stopping = True
            if state.running:
                say("asked to stop: what is running saves and stops" if times == 1 else "ended at once")
            runner.stop(hard=times > 1)
    return state


def _start_what_can(state: State[Run], places: Where[Run], runner: Runner, say: Callable[[str], object]) -> None:
    for point in state.left:
        lost = next((n for n in point.needs if n.identity in state.failed or n.identity in state.blocked), None)
        if lost is not None:
            state.blocked[point.identity] = lost.name
        elif len(state.running) < runner.slots and all(need.identity in state.done for need in point.needs):
            run = places.claim(point)
            if is_held(run):
                if point.identity not in state.held:
                    state.held.add(point.identity)
                    say(f"{point.name}: another process still writes {run}; it is waited for")
                continue
            if places.is_done(point):  # by that other process
                state.done.add(point.identity)
                continue
            _write_facts(run, point, places, None)
            state.running[point.identity] = time.monotonic()
            words = places.words(point)
            log = str((run / LOG).absolute())
            runner.start(Launch(point.identity, f"experiments.{point.program}", words, log))


def _note(
    point: Run, ended: Ended, state: State[Run], places: Where[Run], retries: int, say: Callable[[str], object]
) -> None:
    """What the end of a process means for its point."""
    run, name = places.run(point), point.identity
    state.running.pop(name, None)
    _write_facts(run, point, places, ended)
    if places.is_done(point):  # the result is what counts, however the process went
        state.done.add(name)
        return
    if state.stopping:
        return
    if ended.status == REFUSED and is_held(run):  # another sweep was first: it is waited for
        return
    state.tries[name] = state.tries.get(name, 0) + 1
    why = reason(ended.status)
    if state.tries[name] <= retries:
        say(f"{point.name}: {why}; it is tried again ({state.tries[name]} of {retries})")
        return
    state.failed[name] = why
    say(f"{point.name}: {why}, {state.tries[name]} times. The last lines of {run / LOG}:\n{last_lines(run / LOG)}")


def reason(status: int) -> str:
    """What an exit status says.

    >>> reason(-9), reason(76)
    ('killed by signal 9', 'diverged (status 76)')
    """
    if status < 0:
        return f"killed by signal {-status}"
    known = {0: "ended without its result", 2: "refused", 75: "was asked to stop", 76: "diverged"}
    return f"{known.get(status, 'failed')} (status {status})" if status else known[0]


def last_lines(log: Path, count: int = LAST) -> str:
    """The end of a log, of each line what a terminal would show."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - END))
        lines = file.read().decode("utf-8", "replace").split("\n")
        shown = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines]
        shown = ["".join(filter(str.isprintable, line))[:WIDEST] for line in shown if line]
        return "\n".join(f"    {line}" for line in shown[-count:])
    return "    (there is none)"


def is_held(run: Path) -> bool:
    """Whether a process writes a run directory (see `train.only_process`)."""
    return is_locked(run / "lock")


def facts_of(run: Path) -> dict[str, Any]:
    """How a point was run: its command, its device, each start with its seconds and, if a sweep heard it, status."""
    facts: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        facts = dict(json.loads((run / POINT).read_text(encoding="utf-8")))
    starts = facts.setdefault("starts", [])
    for line in _text(run / UNHEARD).splitlines():  # starts without a sweep, or that outlived it
        with contextlib.suppress(ValueError):  # half written
            end = json.loads(line)
            starts += [end] if end not in starts else []
    facts["device"] = _text(run / DEVICE).strip()
    return facts


def _text(file: Path) -> str:
    """Of a file that may be missing."""
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def seconds_of(facts: Mapping[str, Any], what: str = "seconds") -> float:
    """What a point has cost, all its starts together; `processor` counts the seconds of each core."""
    return sum(start[what] for start in facts["starts"])


def _write_facts(run: Path, point: Run, places: Where[Run], ended: Ended | None) -> None:
    facts = facts_of(run)
    starts = facts["starts"]
    if ended is not None:
        spent = {"seconds": round(ended.seconds, 3), "processor": round(ended.processor, 3)}
        starts.append({"status": ended.status, **spent})
    run.mkdir(parents=True, exist_ok=True)  # somebody may have deleted it
    write_json(run / POINT, {
        "name": facts.get("name", point.name), "identity": point.identity, "command": places.command(point),
        "device": facts["device"], "starts": starts,
    })  # fmt: skip
