"""Runs points as tasks of a Ray cluster whose machines share a file system; what dies with a machine runs elsewhere."""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.sweeps.forks import ROOT, Ended, Forks, Launch

LOST = 3  # how often a task is started again whose machine is gone


class RayTasks:
    """A Runner of tasks, each with so much of the cluster for itself; as many at a time as fit, or as `jobs` says."""

    def __init__(self, address: str | None, resources: Mapping[str, float], jobs: int | None, workdir: Path):
        try:
            import ray
        except ImportError as error:
            raise ImportError("--runner=ray needs Ray: pip install 'bert_elmo_jax[cluster]'") from error
        self._ray, self._own = ray, not ray.is_initialized()
        if self._own:
            # The machines have the checkout where this one has it, as they have the working directory.
            answers(address)
            told: dict[str, Any] = {"env_vars": {"PYTHONPATH": str(ROOT)}}
            ray.init(address=address, runtime_env=told, log_to_driver=False, logging_level="ERROR", **(
                {} if address else {"include_dashboard": False}
            ))  # fmt: skip
        other = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU")}
        self._task = ray.remote(
            num_cpus=resources.get("CPU", 1), num_gpus=resources.get("GPU", 0), resources=other, max_retries=LOST,
        )(run_launch)  # fmt: skip
        self.slots = jobs or room(ray.cluster_resources(), {"CPU": 1.0, **resources})
        self._cwd, self._cache = str(Path.cwd()), str(workdir / "compiled")
        self._running: dict[Any, str] = {}

    def start(self, launch: Launch) -> None:
        """Hand one to the cluster, which starts it when there is room."""
        self._running[self._task.remote(launch, self._cwd, self._cache)] = launch.key

    def wait(self, seconds: float) -> list[Ended]:
        """Those that have ended, after so many seconds at most."""
        if not self._running:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        ended = []
        for task in ready:
            key = self._running.pop(task)
            try:
                ended.append(self._ray.get(task))
            except (self._ray.exceptions.RayError, KeyboardInterrupt) as error:
                print(f"{key}: {type(error).__name__}: {error}".split("\n")[0], file=sys.stderr)
                ended.append(Ended(key, -9, 0.0, 0.0))
        return ended

    def stop(self, hard: bool = False) -> None:
        """Ask all that are running to save and to stop, or end them; what waits for room does not begin."""
        for task in self._running:
            self._ray.cancel(task, force=hard)

    def close(self) -> None:
        """Leave the cluster."""
        if self._own:
            self._ray.shutdown()


_forks: Forks | None = None  # of a worker's process: imports are paid for once in it


def run_launch(launch: Launch, cwd: str, cache: str) -> Ended:
    """In a worker: run one point, and say how it ended."""
    global _forks
    os.chdir(cwd)
    if _forks is None:
        _forks = Forks(1, cache=Path(cache))
    # What the cluster gave this task of the machine is told by variables; they differ from task to task.
    given = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS") if name in os.environ}
    asked = False
    try:
        _forks.start(launch, given)
        while True:
            try:
                for ended in _forks.wait(1.0):
                    return ended
            except KeyboardInterrupt:  # the sweep was asked to stop
                _forks.stop(hard=asked)
                asked = True
    except OSError:
        _forks = None  # its process is gone: the next one in this worker begins anew
        raise


def answers(address: str | None) -> None:
    """Refuse the address of a cluster that nobody listens at, for which Ray itself takes minutes.

    >>> answers("127.0.0.1:1")
    Traceback (most recent call last):
    ConnectionError: --address=127.0.0.1:1: no Ray cluster answers there; ray start --head prints the address
    """
    host, given, port = (address or "").rpartition(":")
    if not given or "/" in host or not port.isdigit():
        return  # none, auto, or one of ray://
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(
            f"--address={address}: no Ray cluster answers there; ray start --head prints the address"
        ) from error


def room(there: Mapping[str, float], each: Mapping[str, float]) -> int:
    """How many tasks of a size a cluster has room for.

    >>> room({"CPU": 32.0, "GPU": 8.0}, {"CPU": 1.0, "GPU": 2.0})
    4
    """
    most = min(int(there.get(name, 0) // amount) for name, amount in each.items() if amount > 0)
    if most < 1:
        wanted, known = (", ".join(f"{name}={x:g}" for name, x in some.items()) for some in (each, there))
        raise ValueError(f"a point wants {wanted}, and the cluster has {known}: ask for less with --resources=…")
    return most


def resources_of(words: Sequence[str]) -> dict[str, float]:
    """What --resources says.

    >>> resources_of(["GPU=1", "CPU=4"])
    {'GPU': 1.0, 'CPU': 4.0}
    """
    found: dict[str, float] = {}
    for word in words:
        name, _, amount = word.partition("=")
        with contextlib.suppress(ValueError):
            found[name] = float(amount)
        if name not in found or found[name] < 0:
            raise ValueError(f"--resources={word}: expected a name and a number, such as GPU=1")
    return found
