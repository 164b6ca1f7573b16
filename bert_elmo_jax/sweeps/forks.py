"""Runs points on this machine: as forks of one process that has imported the library, each with its own device."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bert_elmo_jax.sweeps.fork_server import PRELOADED

ROOT = Path(__file__).parents[2]


class Launch(NamedTuple):
    """What is started: a module as a program, its words, the file for what it says."""

    key: str
    module: str
    words: list[str]
    log: str


class Ended(NamedTuple):
    """How a start ended: an exit status, or the number of the signal that killed it, negative; and what it cost."""

    key: str
    status: int
    seconds: float
    processor: float  # seconds of all cores together


class Runner(Protocol):
    """Runs points, some at a time."""

    slots: int

    def start(self, launch: Launch) -> None:
        """Start one; there is room for it."""

    def wait(self, seconds: float) -> list[Ended]:
        """Those that have ended, after so many seconds at most."""

    def stop(self, hard: bool = False) -> None:
        """Ask all that are running to save and to stop, or end them."""

    def close(self) -> None:
        """End what is left."""


class Forks:
    """A Runner of `jobs` processes side by side.

    `devices` are numbers of GPUs or of TPU chips that the processes share out among themselves; without any they share
    out the cores of the CPU: two that compute on all of them are slower than each on its own.
    """

    def __init__(
        self, jobs: int, devices: Sequence[str] = (), cache: Path | None = None, preloaded: Sequence[str] = PRELOADED
    ):
        self.slots = jobs
        cores = [[]] * jobs if devices else cores_of(jobs)
        self._free = [(devices[n % len(devices)] if devices else "", cores[n]) for n in range(jobs)]
        self._share = -(-jobs // len(devices)) if devices else 1
        self._running: dict[str, tuple[str, list[int]]] = {}
        self._heard = b""
        kept = {} if cache is None else {
            "JAX_COMPILATION_CACHE_DIR": str(cache.absolute()),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # many points of small functions, the same for all
        }  # fmt: skip
        serve = f"from bert_elmo_jax.sweeps.fork_server import serve; serve({tuple(preloaded)}"
        # A session of its own: Ctrl-C in a terminal is for the sweep, which passes it on.
        self._server = subprocess.Popen(
            [sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True, cwd=Path.cwd(), bufsize=0,
            env={**kept, **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip

    def start(self, launch: Launch, given: Mapping[str, str] | None = None) -> None:
        """Start one; there is room for it. Its environment is what is `given`, or that of its device."""
        device, cores = self._running[launch.key] = self._free.pop(0)
        Path(launch.log).parent.mkdir(parents=True, exist_ok=True)
        self._order({
            "start": launch.key, "module": launch.module, "words": launch.words, "log": launch.log, "cores": cores,
            "environment": environment(device, self._share) if given is None else dict(given),
        })  # fmt: skip

    def wait(self, seconds: float) -> list[Ended]:
        """Those that have ended, after so many seconds at most."""
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], seconds)[0]:
            return []
        some = os.read(self._server.stdout.fileno(), 1 << 16)
        if not some:
            status = self._server.wait()
            memory = status == -signal.SIGKILL  # which is how a system that runs out of it ends processes
            raise OSError(
                f"the process that runs the points ended with status {status}; the same command goes on"
                + (", with fewer --jobs if it was for lack of memory" if memory else "")
            )
        *lines, self._heard = (self._heard + some).split(b"\n")
        found = [json.loads(line) for line in lines]
        ended = [Ended(**told) for told in found if "key" in told]
        for one in ended:
            self._free.append(self._running.pop(one.key))
        return ended

    def stop(self, hard: bool = False) -> None:
        """Ask all that are running to save and to stop, or end them."""
        for key in self._running:
            self._order({"stop": key, "signal": signal.SIGKILL if hard else signal.SIGTERM})

    def close(self) -> None:
        """End what is left."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _order(self, what: Mapping[str, Any]) -> None:
        assert self._server.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `wait` says that it is gone
            self._server.stdin.write(json.dumps(what).encode() + b"\n")


def cores_of(jobs: int) -> list[list[int]]:
    """Which cores each of so many processes has for itself; none where there are too few, or no telling them apart.

    As many for each: how a sum is shared out among cores can change its last digit.
    """
    if jobs == 1 or not hasattr(os, "sched_getaffinity"):
        return [[]] * jobs
    there = sorted(os.sched_getaffinity(0))
    return [there[n::jobs][: len(there) // jobs] for n in range(jobs)]


def environment(device: str, share: int = 1) -> dict[str, str]:
    """What lets a process see one device; which kind it is, the libraries of that kind know.

    >>> environment("1")["CUDA_VISIBLE_DEVICES"], environment("")
    ('1', {})
    """
    if not device:
        return {}
    seen = {
        "CUDA_VISIBLE_DEVICES": device,
        "TPU_VISIBLE_CHIPS": device,
        "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1",
        "TPU_PROCESS_BOUNDS": "1,1,1",
    }
    # JAX takes three quarters of a GPU's memory for the first that comes, unless told how many share it.
    return seen if share == 1 else {**seen, "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 / share:.3f}"}
