"""The progress of a sweep: a bar in a terminal, and a line for each point that ends."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from bert_elmo_jax.runs.start_cost import sum_costs
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import Point
from bert_elmo_jax.sweeps.processes import LOG
from bert_elmo_jax.sweeps.schedule import SweepState


class Progress:
    """Shows the finished and the running points, and the time left.

    `usual` returns the seconds that a point usually takes, until points of its kind have shown their own.
    """

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
        made = sum(weights[name] for name in state.done)
        made += sum(weights[name] * self.share(point, state) for name, point in _find_running(state).items())
        self._bar.n = made / sum(weights.values())
        self._bar.set_description_str(self.describe(state, names=True))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._bar.close()

    def describe(self, state: SweepState, names: bool = False) -> str:
        """Return how many points are done, running and failed, and the time left."""
        parts = [f"{len(state.done)} of {len(state.points)} done"]
        rest, lost = self.time_left(state), len(state.failed) + len(state.blocked)
        parts += [f"about {_write_time(rest)} left"] if rest is not None else []
        parts += [f"{lost} failed or lost by it"] if lost else []
        if names and state.running:
            shares = [f"{point.name} {self.share(point, state):.0%}" for point in _find_running(state).values()]
            parts.append(", ".join(shares))
        return " · ".join(parts)

    def expect(self, point: Point) -> float | None:
        """Return how many seconds a point takes, judged by finished ones, or None."""
        known = [(done, seconds) for done, seconds in (self._done or {}).values() if seconds]
        if self._usual is not None:
            usual = sum(self._usual(done) for done, _ in known)
            return self._usual(point) * (sum(seconds for _, seconds in known) / usual if usual else 1.0)
        kin = [seconds for done, seconds in known if (done.program, done.config) == (point.program, point.config)]
        seconds = kin or [seconds for _, seconds in known]
        return sum(seconds) / len(seconds) if seconds else None

    def share(self, point: Point, state: SweepState) -> float:
        """Return the finished share of a running point: from a pretraining's own bar, else from the time passed."""
        if point.program == "pretrain":
            return read_last_percent(self._folders.run(point) / LOG) / 100
        expected = self.expect(point)
        return min(0.95, (time.monotonic() - state.running[point.identity]) / expected) if expected else 0.0

    def time_left(self, state: SweepState) -> float | None:
        """Return how many seconds the rest takes, or None before any point has finished."""
        rest = []
        for point in [*state.left, *_find_running(state).values()]:
            seconds = self.expect(point)
            if seconds is None:
                return None
            rest.append(seconds * (1 - self.share(point, state) if point.identity in state.running else 1))
        return max(sum(rest) / self._jobs, *rest) if rest else 0.0


def _find_running(state: SweepState) -> dict[str, Point]:
    return {point.identity: point for point in state.points if point.identity in state.running}


def _write_time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def read_last_percent(log: Path) -> int:
    """Return the percentage of the last progress bar in a log, or 0."""
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        if found := re.findall(rb"(\d+)%\|", file.read()):
            return int(found[-1])
    return 0
