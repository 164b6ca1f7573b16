"""What a terminal shows of a sweep: one line that is written over, and what happens above it."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from bert_elmo_jax.report.results import count_columns as width_of
from bert_elmo_jax.sweeps.points import Places, Point
from bert_elmo_jax.sweeps.schedule import State, facts_of, seconds_of


class Dashboard:
    """Shows a state as it changes: in a terminal on one line, elsewhere a line for each point that ends."""

    def __init__(self, places: Places, jobs: int, out: TextIO | None = None):
        self._out = sys.stderr if out is None else out
        self._live = self._out.isatty()
        self._places, self._jobs = places, jobs
        self._seconds: dict[str, float] = {}  # of points that are done
        self._shown = ""

    def say(self, line: str) -> None:
        """A line that stays."""
        self._wipe()
        print(line, file=self._out, flush=True)
        self._show(self._shown)

    def changed(self, state: State[Point]) -> None:
        """A point has ended."""
        for point in state.points:
            if point.identity in state.done and point.identity not in self._seconds:
                self._seconds[point.identity] = seconds_of(facts_of(self._places.run(point)))
        if not self._live:
            print(self.status(state, names=False), file=self._out, flush=True)

    def tick(self, state: State[Point]) -> None:
        """Time has passed."""
        if self._live:
            self._wipe()
            self._show(self.status(state))

    def close(self) -> None:
        """Leave the terminal as it is found by others."""
        self._wipe()
        self._shown = ""

    def status(self, state: State[Point], names: bool = True) -> str:
        """Done, running, failed, time left."""
        of = {point.identity: point for point in state.points}
        lost = len(state.failed) + len(state.blocked)
        parts = [f"{len(state.done)} of {len(state.points)} done"]
        if state.running:
            who = ": " + "; ".join(of[name].name for name in state.running) if names else ""
            parts.append(f"{len(state.running)} running{who}")
        parts += [f"{lost} failed or lost by it"] if lost else []
        rest = time_left(state, self._seconds, self._jobs)
        parts += [f"about {_time(rest)} left"] if rest is not None else []
        if names and len(parts) > 2:
            parts[1], parts[-1] = parts[-1], parts[1]  # names are what is cut off where there is no room
        return " · ".join(parts)

    def _wipe(self) -> None:
        if self._live and self._shown:
            print("\r\x1b[K", end="", file=self._out)

    def _show(self, line: str) -> None:
        self._shown = line
        if self._live and line:
            room = shutil.get_terminal_size().columns - 1
            while width_of(line) > room:
                line = line[: -1 - (width_of(line) - room) // 2]
            print(line, end="", file=self._out, flush=True)


def time_left(state: State[Point], seconds: Mapping[str, float], jobs: int) -> float | None:
    """How long the rest takes, at the pace of points of the same kind that are done; None before any is.

    >>> a, b = (Point(name, "pretrain_bert", "bert_toy", {"seed": n}) for n, name in enumerate("ab"))
    >>> time_left(State([a, b], done={a.identity}), {a.identity: 30.0}, jobs=1)
    30.0
    """
    timed = {point.identity: point for point in state.points if seconds.get(point.identity)}
    if not timed:
        return None
    kinds: dict[tuple[str, str], list[float]] = {}
    for name, point in timed.items():
        kinds.setdefault((point.program, point.config), []).append(seconds[name])
    usual = sum(seconds[name] for name in timed) / len(timed)

    def expected(point: Point) -> float:
        known = kinds.get((point.program, point.config))
        return sum(known) / len(known) if known else usual

    now = time.monotonic()
    rest = [expected(point) for point in state.left]
    rest += [
        max(0.0, expected(p) - (now - state.running[p.identity])) for p in state.points if p.identity in state.running
    ]
    return max(sum(rest) / jobs, *rest) if rest else 0.0


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
