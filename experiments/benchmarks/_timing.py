"""Timing of functions in one process."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Paired(NamedTuple):
    """Median seconds of both sides, and the median of the pairs' ratios, ours divided by theirs."""

    theirs: float
    ours: float
    ratio: float


def in_turn(theirs: Callable[[], float], ours: Callable[[], object], repeats: int) -> Paired:
    """Time both sides, one after the other, `repeats` times; `theirs` returns its own seconds."""
    pairs = [(theirs(), seconds(ours)) for _ in range(repeats)]
    other, mine = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Paired(other, mine, statistics.median(b / a for a, b in pairs))


def seconds(run: Callable[[], object]) -> float:
    """Return the duration of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the median duration of a call."""
    return statistics.median(seconds(run) for _ in range(repeats))
