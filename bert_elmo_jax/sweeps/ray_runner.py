"""Run jobs as tasks of a Ray cluster whose machines share a file system; jobs of a lost machine run elsewhere."""

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.sweeps.processes import Ended, Job, Processes

ROOT = Path(__file__).parents[2]
LOST = 3  # how often a task is restarted whose machine is gone


class RayTasks:
    """A Runner of tasks that each reserve `resources` of the cluster; as many at a time as fit, or `jobs`."""

    def __init__(self, address: str | None, resources: Mapping[str, float], jobs: int | None, workdir: Path):
        try:
            import ray
        except ImportError as error:
            raise ImportError("--runner=ray needs Ray: pip install 'bert_elmo_jax[cluster]'") from error
        self._ray, self._own = ray, not ray.is_initialized()
        if self._own:
            # The machines have the checkout where this one has it, as they have the working directory.
            check_address(address)
            settings: dict[str, Any] = {} if address else {"include_dashboard": False}
            environment = {"env_vars": {"PYTHONPATH": str(ROOT)}}
            ray.init(address=address, runtime_env=environment, log_to_driver=False, logging_level="ERROR", **settings)
        other = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU")}
        self._task = ray.remote(
            num_cpus=resources.get("CPU", 1), num_gpus=resources.get("GPU", 0), resources=other, max_retries=LOST,
        )(run_task)  # fmt: skip
        self.slots = jobs or count_slots(ray.cluster_resources(), {"CPU": 1.0, **resources})
        self._cwd, self._cache = str(Path.cwd()), workdir / "compiled"
        self._running: dict[Any, str] = {}

    def start(self, job: Job) -> None:
        """Hand a job to the cluster, which starts it when there is room."""
        self._running[self._task.remote(job, self._cwd, self._cache)] = job.key

    def wait(self, seconds: float) -> list[Ended]:
        """Return the jobs that have ended, after `seconds` at the latest."""
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
                ended.append(Ended(key, -9, 0.0))
        return ended

    def stop(self, hard: bool = False) -> None:
        """Ask all running jobs to save and stop, or kill them; those that wait for room do not start."""
        for task in self._running:
            self._ray.cancel(task, force=hard)

    def close(self) -> None:
        """Leave the cluster."""
        if self._own:
            self._ray.shutdown()


_processes: Processes | None = None  # of this worker, whose fork server imports the library once


def run_task(job: Job, cwd: str, cache: Path) -> Ended:
    """Run one job in a process of a Ray worker."""
    global _processes
    os.chdir(cwd)
    _processes = _processes or Processes(1, cache=cache)
    # Ray tells each task by variables which devices it may use.
    given = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS") if name in os.environ}
    _processes.start(job, given)
    asked = False
    while True:
        try:
            for ended in _processes.wait(1.0):
                return ended
        except KeyboardInterrupt:  # the sweep was asked to stop
            _processes.stop(hard=asked)
            asked = True


def check_address(address: str | None) -> None:
    """Raise at once if no cluster answers at an address; Ray itself tries for minutes."""
    host, given, port = (address or "").rpartition(":")
    if not given or "/" in host or not port.isdigit():
        return  # none, auto, or one of ray://
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(
            f"--address={address}: no Ray cluster answers there; ray start --head prints the address"
        ) from error


def count_slots(available: Mapping[str, float], each: Mapping[str, float]) -> int:
    """Return how many tasks fit into a cluster."""
    slots = min(int(available.get(name, 0) // amount) for name, amount in each.items() if amount > 0)
    if slots < 1:
        wanted, known = (", ".join(f"{name}={x:g}" for name, x in some.items()) for some in (each, available))
        raise ValueError(f"a point wants {wanted}, and the cluster has {known}: ask for less with --resources=…")
    return slots


def read_resources(words: Sequence[str]) -> dict[str, float]:
    """Return the amounts that --resources names."""
    found: dict[str, float] = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            found[name] = float(amount)
            if found[name] < 0:
                raise ValueError
        except ValueError:
            raise ValueError(f"--resources={word}: expected a name and a number, such as GPU=1") from None
    return found
