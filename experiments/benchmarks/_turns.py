"""Processes that take turns: one of ours, one of a peer's, each with its own interpreter."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SETTLE = 0.3  # seconds: the threads of the other side spin for a moment before they sleep
Seconds = dict[str, tuple[list[float], list[float]]]  # pass -> ours, theirs


class SideFailed(OSError):
    """A side ended without an answer; its own message is on standard error."""


def environment(gpu: bool = False, root: Path = ROOT) -> dict[str, str]:
    """Return the variables of a side: the cores of this process, no cache of programs, the checkout at `root`.

    Without `gpu` both use the CPU; with it they share one GPU, so JAX may not take most of its memory at once.
    """
    device = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if gpu else {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    variables = {"PYTHONPATH": str(root), "TOKENIZERS_PARALLELISM": "true", **device}
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
    return {**os.environ, **variables, **quiet, "JAX_ENABLE_COMPILATION_CACHE": "false"}


def command(interpreter: str, side: str, folder: Path, precision: str) -> list[str]:
    """Return the command of a side."""
    return [interpreter, "-m", "experiments.benchmarks._side", side, str(folder), precision]


@contextmanager
def start_side(
    interpreter: str, side: str, folder: Path, precision: str, gpu: bool = False, root: Path = ROOT
) -> Iterator[tuple[Callable[[str], float], Mapping[str, Any]]]:
    """Start a side; yield a function that times one of its passes, and what the side says about itself."""
    words = command(interpreter, side, folder, precision)
    pipe: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(words, env=environment(gpu, root), cwd=root, **pipe) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin and stdout

        def answer() -> Any:
            if not (line := stdout.readline()):
                raise SideFailed(f"{side} in {interpreter} ended without an answer; its message is above")
            return json.loads(line)

        def run(name: str) -> float:
            stdin.write(f"{name}\n")
            return float(answer())

        yield run, answer()  # leaving closes its standard input, which ends it


def take_turns(
    ours: Callable[[str], float], theirs: Callable[[str], float], passes: Sequence[str], turns: int
) -> Seconds:
    """Run every pass of both sides in turn; the side that begins alternates."""
    seconds: Seconds = {name: ([], []) for name in passes}
    for name, (our_seconds, their_seconds) in seconds.items():
        for turn in range(turns):
            for side, column in [(ours, our_seconds), (theirs, their_seconds)][:: 1 if turn % 2 else -1]:
                time.sleep(SETTLE)
                column.append(side(name))
    return seconds


def start_cold(
    interpreter: str, side: str, folder: Path, precision: str, variables: Mapping[str, str] = {}, root: Path = ROOT
) -> tuple[dict[str, float], dict[str, Any]]:
    """Start a side that makes ten calls and ends; return the seconds to its first result, of its tenth call, and more.

    The time of the first call begins with the process: it includes the interpreter, imports, loading and compiling.
    """
    start = time.perf_counter()
    words = command(interpreter, side, folder, precision)
    process_environment = {**environment(root=root), **variables}
    with subprocess.Popen(words, env=process_environment, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        seconds = time.perf_counter() - start
        line = process.stdout.readline()
    if not first or not line:
        raise SideFailed(f"{side} in {interpreter} ended without an answer; its message is above")
    about = json.loads(line)
    return {"first": seconds, "tenth": about.pop("tenth")}, about


def check_interpreter(interpreter: str, modules: Sequence[str], flag: str) -> None:
    """Raise ValueError if an interpreter lacks one of the modules."""
    code = f"import importlib.util as u; print([m for m in {list(modules)!r} if u.find_spec(m) is None])"
    try:
        done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"--{flag}={interpreter} does not start: {error}") from None
    if (lacking := done.stdout.strip()) != "[]":
        remark = " (this interpreter)" if interpreter == sys.executable else ""
        names = lacking.strip("[]").replace("'", "")
        raise ValueError(f"{interpreter}{remark} lacks {names}: install them there, or give --{flag}=/path/to/python")
