"""Two sides timed in turn: ours in this process, the peer's in a process with its own interpreter."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SETTLE = 0.3  # seconds: the threads of the other side spin for a moment before they sleep


class Paired(NamedTuple):
    """Median seconds of both sides, and the median of the pairs' ratios, ours divided by theirs."""

    theirs: float
    ours: float
    ratio: float


@contextmanager
def peer(
    interpreter: str, program: str, called: str, *arguments: str
) -> Iterator[tuple[Callable[[str], float], dict[str, Any]]]:
    """Start a program of this folder; yield a function that runs one of its passes, and its description of itself.

    The program prints the description as a line of JSON, and then answers every line that it reads with seconds.
    """
    command = [interpreter, str(Path(__file__).with_name(program)), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin
        assert stdout

        def answer() -> str:
            if not (line := stdout.readline()):
                sys.exit(f"{called} in {interpreter} ended without an answer; its message is above")
            return line

        def run(name: str) -> float:
            stdin.write(name + "\n")
            return float(answer())

        yield run, json.loads(answer())  # leaving closes its standard input, which ends it


def in_turn(theirs: Callable[[], float], ours: Callable[[], float], repeats: int) -> Paired:
    """Time both sides, one after the other, `repeats` times; each function returns its seconds."""
    pairs = []
    for _ in range(repeats):
        time.sleep(SETTLE)
        other = theirs()
        time.sleep(SETTLE)
        pairs.append((other, ours()))
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
