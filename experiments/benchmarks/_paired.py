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
def peer(interpreter: str, kind: str, called: str, folder: str) -> Iterator[tuple[Callable[[str], float], dict]]:
    """Start a side of `_peers.py`; yield a function that times a pass of it, and what the side prints about itself."""
    command = [interpreter, str(Path(__file__).with_name("_peers.py")), kind, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin and stdout

        def answer() -> Any:
            if not (line := stdout.readline()):
                sys.exit(f"{called} in {interpreter} ended without an answer; its message is above")
            return json.loads(line)

        def run(name: str) -> float:
            stdin.write(name + "\n")
            return answer()

        yield run, answer()  # leaving closes its standard input, which ends it


def in_turn(theirs: Callable[[], float], ours: Callable[[], object], repeats: int) -> Paired:
    """Time both sides, one after the other, `repeats` times; `theirs` returns its own seconds."""
    pairs = []
    for _ in range(repeats):
        time.sleep(SETTLE)
        other = theirs()
        time.sleep(SETTLE)
        pairs.append((other, seconds(ours)))
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
