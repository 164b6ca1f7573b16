"""Two sides timed in turn: ours in this process, another project's in one with an interpreter of its own."""

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
    """Median seconds of both sides, and the median of the pairs' ratios, ours through theirs."""

    theirs: float
    ours: float
    ratio: float


@contextmanager
def peer(
    interpreter: str, program: str, called: str, *arguments: str
) -> Iterator[tuple[Callable[[str], float], dict[str, Any]]]:
    """A program of this folder in a process of its own, and what it says about itself.

    It prints that as a line of JSON, and then answers every line that it reads with the seconds that it took to do it.
    """
    command = [interpreter, str(Path(__file__).with_name(program)), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin
        assert stdout

        def answer() -> str:
            if not (line := stdout.readline()):
                sys.exit(f"{called} in {interpreter} ended without an answer; its message stands above")
            return line

        def run(name: str) -> float:
            stdin.write(name + "\n")
            return float(answer())

        yield run, json.loads(answer())  # leaving closes its standard input, which ends it


def in_turn(theirs: Callable[[], float], ours: Callable[[], float], repeats: int) -> Paired:
    """Both sides, one after the other, so many times; each gives the seconds that it took."""
    pairs = []
    for _ in range(repeats):
        time.sleep(SETTLE)
        other = theirs()
        time.sleep(SETTLE)
        pairs.append((other, ours()))
    other, mine = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Paired(other, mine, statistics.median(b / a for a, b in pairs))


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
