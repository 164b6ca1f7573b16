"""Run points in order: needs first, as many at once as there are slots, failures again."""

import contextlib
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bert_elmo_jax.files import is_locked, read_json, write_json
from bert_elmo_jax.runs.start_run import add_cost, read_costs, sum_costs
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import Point
from bert_elmo_jax.sweeps.runners import LOG, Ended, Runner, stop_asked
from bert_elmo_jax.train.run_guard import DIVERGED, REFUSED, STOPPED

TICK = 0.5  # seconds between two looks at everything
LAST, WIDEST = 12, 400  # lines of a log that are shown after a failure, and characters of each
END = 1 << 16  # bytes at the end of a log that are read


@dataclass
class SweepState:
    """The points of a sweep, and by their identity which of them run, are done, or have failed."""

    points: Sequence[Point]
    running: dict[str, float] = field(default_factory=dict)  # when it started
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # why
    blocked: dict[str, str] = field(default_factory=dict)  # the name of the lost point that it needs
    locked: set[str] = field(default_factory=set)  # by a process of another sweep, or of an earlier start
    tries: dict[str, int] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)  # how many starts had left their cost before this one
    stopping: bool = False

    @property
    def at_work(self) -> list[Point]:
        """Points that are running."""
        return [point for point in self.points if point.identity in self.running]

    @property
    def left(self) -> list[Point]:
        """Points that have not ended and are not running."""
        ended = {*self.running, *self.done, *self.failed, *self.blocked}
        return [point for point in self.points if point.identity not in ended]


def run_points(
    points: Sequence[Point],
    folders: Folders,
    runner: Runner,
    *,
    retries: int = 1,
    changed: Callable[[SweepState], object] = lambda state: None,
    tick: Callable[[SweepState], object] = lambda state: None,
    say: Callable[[str], object] = lambda line: None,
    stop: Callable[[], int] = lambda: 0,
) -> SweepState:
    """Run all points that are not done; call `changed` whenever one ends, `tick` every half second."""
    state = SweepState(points, done={point.identity for point in points if folders.is_done(point)})
    by_identity = {point.identity: point for point in points}
    changed(state)
    stops = 0
    while state.running or (state.left and not state.stopping):
        if not state.stopping:
            _start_ready(state, folders, runner, say)
        tick(state)
        for ended in runner.wait(TICK):
            _record_end(by_identity[ended.key], ended, state, folders, retries, say)
            changed(state)
        if (times := stop()) > stops:
            stops = times
            state.stopping = True
            if state.running:
                say("asked to stop: running points save and stop" if times == 1 else "ended at once")
            runner.stop(hard=times > 1)
    return state


def _start_ready(state: SweepState, folders: Folders, runner: Runner, say: Callable[[str], object]) -> None:
    for point in state.left:
        lost = next((n for n in point.needs if n.identity in state.failed or n.identity in state.blocked), None)
        if lost is not None:
            state.blocked[point.identity] = lost.name
        elif len(state.running) < runner.slots and all(need.identity in state.done for need in point.needs):
            run = folders.claim(point)
            if is_locked(run / "lock"):
                if point.identity not in state.locked:
                    state.locked.add(point.identity)
                    say(f"{point.name}: another process still writes {run}; waiting for it")
                continue
            if folders.is_done(point):  # by that other process
                state.done.add(point.identity)
                continue
            _write_facts(point, folders)
            state.costs[point.identity] = len(read_costs(run))
            state.running[point.identity] = time.monotonic()
            runner.start(folders.job(point))


def _record_end(
    point: Point, ended: Ended, state: SweepState, folders: Folders, retries: int, say: Callable[[str], object]
) -> None:
    run, name = folders.run(point), point.identity
    state.running.pop(name, None)
    _write_facts(point, folders, ended.status)
    if len(read_costs(run)) == state.costs[name]:  # it was killed, or refused at once
        add_cost(run, ended.seconds)
    if folders.is_done(point):  # the result counts, not the exit status
        state.done.add(name)
        return
    if state.stopping or (ended.status == REFUSED and is_locked(run / "lock")):  # another sweep was first
        return
    state.tries[name] = state.tries.get(name, 0) + 1
    why = explain_status(ended.status)
    if state.tries[name] <= retries:
        say(f"{point.name}: {why}; trying again ({state.tries[name]} of {retries})")
        return
    state.failed[name] = why
    say(f"{point.name}: {why}, {state.tries[name]} times. The last lines of {run / LOG}:\n{read_last_lines(run / LOG)}")


def explain_status(status: int) -> str:
    """Return what an exit status means.

    >>> (explain_status(-9), explain_status(76))
    ('killed by signal 9', 'diverged (status 76)')
    """
    if status < 0:
        return f"killed by signal {-status}"
    endings = {REFUSED: "refused", STOPPED: "stopped on request", DIVERGED: "diverged"}
    return f"{endings.get(status, 'failed')} (status {status})" if status else "ended without its result"


def read_last_lines(log: Path, count: int = LAST) -> str:
    """Return the last lines of a log as a terminal would show them."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - END))
        lines = file.read().decode("utf-8", "replace").split("\n")
        shown = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines]
        shown = ["".join(filter(str.isprintable, line))[:WIDEST] for line in shown if line]
        return "\n".join(f"    {line}" for line in shown[-count:])
    return "    (there is no log)"


def _write_facts(point: Point, folders: Folders, *statuses: int) -> None:
    """Write point.json: the run's command, and the exit statuses of its starts, to which new ones are added."""
    run = folders.run(point)
    run.mkdir(parents=True, exist_ok=True)  # it may have been deleted
    stored: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        stored = read_json(run / "point.json", default={})
    record = {"name": stored.get("name", point.name), "identity": point.identity, "command": folders.command(point)}
    write_json(run / "point.json", {**record, "statuses": [*stored.get("statuses", []), *statuses]})


class Progress:
    """Shows the finished and running points and the time left; `usual` returns the seconds a point usually takes."""

    def __init__(self, folders: Folders, jobs: int, usual: Callable[[Point], int] | None = None):
        self._folders, self._jobs, self._usual = folders, jobs, usual
        self._done: dict[str, tuple[Point, float]] | None = None  # points by identity, and their seconds
        self._bar = tqdm(total=1.0, bar_format="{percentage:3.0f}%|{bar:24}| {desc}", leave=False, disable=None,
                         dynamic_ncols=True)  # fmt: skip

    def say(self, line: str) -> None:
        """Print a line that stays."""
        tqdm.write(line, file=sys.stderr)

    def changed(self, state: SweepState) -> None:
        """Report the points that have ended, but of those that were done at the start only their number."""
        first, self._done = self._done is None, self._done or {}
        for point in state.points:
            if point.identity in state.done and point.identity not in self._done:
                self._done[point.identity] = point, sum_costs(self._folders.run(point))
                if not first:
                    self.say(f"{point.name}: done · {self.describe(state)}")
        if first:
            self.say(self.describe(state))

    def tick(self, state: SweepState) -> None:
        """Redraw the bar."""
        weights = {point.identity: self.expect(point) or 1.0 for point in state.points}
        done = sum(weights[name] for name in state.done)
        done += sum(weights[point.identity] * self.share(point, state) for point in state.at_work)
        self._bar.n = done / sum(weights.values())
        self._bar.set_description_str(self.describe(state, names=True))

    def run(self, points: Sequence[Point], runner: Runner, retries: int, changed: Callable[..., object]) -> SweepState:
        """Run points with the bar, until all have ended, or SIGTERM or Ctrl-C asks to stop."""
        run = functools.partial(run_points, points, self._folders, runner, tick=self.tick, say=self.say)
        with contextlib.closing(self._bar), stop_asked() as stop:  # at the end the terminal is as it was
            return run(retries=retries, changed=changed, stop=stop)

    def describe(self, state: SweepState, names: bool = False) -> str:
        """Return how many points are done, running and failed, and the time left."""
        parts = [f"{len(state.done)} of {len(state.points)} done"]
        left, lost = self.time_left(state), len(state.failed) + len(state.blocked)
        parts += [f"about {_write_time(left)} left"] if left is not None else []
        parts += [f"{lost} failed or lost by it"] if lost else []
        if names and state.running:
            parts.append(", ".join(f"{point.name} {self.share(point, state):.0%}" for point in state.at_work))
        return " · ".join(parts)

    def expect(self, point: Point) -> float | None:
        """Return how many seconds a point takes, judged by finished ones, or None."""
        measured = [(done, seconds) for done, seconds in (self._done or {}).values() if seconds]
        if self._usual is not None:
            usual = sum(self._usual(done) for done, _ in measured)
            return self._usual(point) * (sum(seconds for _, seconds in measured) / usual if usual else 1.0)
        kin = [seconds for done, seconds in measured if (done.program, done.config) == (point.program, point.config)]
        seconds = kin or [seconds for _, seconds in measured]
        return sum(seconds) / len(seconds) if seconds else None

    def share(self, point: Point, state: SweepState) -> float:
        """Return the finished share of a running point: from a pretraining's own bar, else from the time passed."""
        if point.program == "pretrain":
            return read_last_percent(self._folders.run(point) / LOG) / 100
        expected = self.expect(point)
        return min(0.95, (time.monotonic() - state.running[point.identity]) / expected) if expected else 0.0

    def time_left(self, state: SweepState) -> float | None:
        """Return how many seconds the rest takes, or None before any point has finished."""
        expected = []
        for point in [*state.left, *state.at_work]:
            seconds = self.expect(point)
            if seconds is None:
                return None
            expected.append(seconds * (1 - self.share(point, state) if point.identity in state.running else 1))
        return max(sum(expected) / self._jobs, *expected) if expected else 0.0


def _write_time(s: float) -> str:
    return f"{s:.0f} seconds" if s < 90 else f"{s / 60:.0f} minutes" if s < 5400 else f"{s / 3600:.1f} hours"


def read_last_percent(log: Path) -> int:
    """Return the percentage of the last progress bar in a log, or 0.

    >>> read_last_percent(Path("no/such/log.txt"))
    0
    """
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        if percents := re.findall(rb"(\d+)%\|", file.read()):
            return int(percents[-1])
    return 0
