"""Run jobs: in processes of this machine, each with its own device or cores, or as tasks of a Ray cluster."""

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import connection, forkserver, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bert_elmo_jax import platform_support
from bert_elmo_jax.runs.start_run import Call, cache_compiled, run_point

LOG = "log.txt"  # in a run directory: standard output and error of all its starts
ROOT = Path(__file__).parents[2]
LOST = 3  # how often a task is restarted whose machine is gone


class Job(NamedTuple):
    """A run to start: `call(config, workdir, **options)` with a config file and overrides of its fields."""

    key: str
    call: Call
    config: str
    fields: Mapping[str, str]
    workdir: str
    options: Mapping[str, Any] = {}


class Ended(NamedTuple):
    """The end of a job: its exit status, or the negative number of the signal that killed it."""

    key: str
    status: int
    seconds: float


@runtime_checkable
class Runner(Protocol):
    """Runs jobs, at most `slots` at a time."""

    slots: int

    def start(self, job: Job) -> None:
        """Start a job; there must be a free slot."""

    def wait(self, seconds: float) -> list[Ended]:
        """Return the jobs that have ended, after `seconds` at the latest."""

    def stop(self, hard: bool = False) -> None:
        """Ask all running jobs to save and stop, or kill them."""

    def close(self) -> None:
        """Stop the jobs that are left and wait for them."""


class Slot(NamedTuple):
    """The share of one process: an environment that shows it one device, or some cores."""

    environment: Mapping[str, str]
    cores: Sequence[int]


class Processes:
    """A Runner of `jobs` processes side by side.

    `devices` are numbers of GPUs or TPU chips, which the processes share. Without devices they share the cores: two
    that compute on all cores are slower than each alone. `cache` is a folder for what JAX compiles.
    """

    def __init__(self, jobs: int, devices: Sequence[str] = (), cache: Path | None = None):
        self.slots = jobs
        share = -(-jobs // len(devices)) if devices else 1
        cores = [[]] * jobs if devices else platform_support.split_cores(jobs)
        self._free = [Slot(show_device(devices[n % len(devices)], share) if devices else {}, cores[n])
                      for n in range(jobs)]  # fmt: skip
        self._cache = cache
        self._context: Any = get_context(platform_support.start_method())
        # The fork server imports once what this process has imported of the library.
        self._context.set_forkserver_preload([name for name in sys.modules if name.startswith("bert_elmo_jax.")])
        self._running: dict[str, tuple[BaseProcess, Slot, float]] = {}

    def start(self, job: Job, environment: Mapping[str, str] | None = None) -> None:
        """Start a job; there must be a free slot. `environment` replaces the slot's."""
        slot = self._free.pop(0)
        Path(job.workdir).mkdir(parents=True, exist_ok=True)
        variables = slot.environment if environment is None else environment
        # Not a daemon: a run may have processes of its own, for its data.
        process = self._context.Process(target=run_job, args=(job, variables, slot.cores, self._cache), name=job.key)
        if self._context.get_start_method() == "forkserver":
            with _sigterm_blocked():
                forkserver.ensure_running()
        process.start()
        self._running[job.key] = process, slot, time.monotonic()

    def wait(self, seconds: float) -> list[Ended]:
        """Return the jobs that have ended, after `seconds` at the latest."""
        connection.wait([process.sentinel for process, _, _ in self._running.values()], seconds)
        ended = []
        for key, (process, slot, began) in list(self._running.items()):
            if process.exitcode is not None:
                ended.append(Ended(key, process.exitcode, time.monotonic() - began))
                process.close()
                self._free.append(slot)
                del self._running[key]
        return ended

    def stop(self, hard: bool = False) -> None:
        """Ask all running jobs to save and stop, or kill them."""
        for process, _, _ in self._running.values():
            process.kill() if hard else process.terminate()

    def close(self) -> None:
        """Stop the jobs that are left and wait for them."""
        self.stop()
        while self._running:
            self.wait(1.0)


def check_devices(devices: Sequence[str], flag: str = "--devices") -> None:
    """Raise ValueError unless devices are given by different numbers.

    >>> check_devices(["0", "1"])
    >>> check_devices(["0", "0"])
    Traceback (most recent call last):
    ...
    ValueError: --devices=0,0: expected different numbers of GPUs or TPU chips, such as 0,1
    """
    if not all(re.fullmatch(r"[0-9]{1,4}", device) for device in devices) or len({*map(int, devices)}) < len(devices):
        raise ValueError(f"{flag}={','.join(devices)}: expected different numbers of GPUs or TPU chips, such as 0,1")


def show_device(device: str, share: int = 1) -> dict[str, str]:
    """Return environment variables that show a process one GPU or TPU chip, which `share` processes use.

    >>> show_device("1")["CUDA_VISIBLE_DEVICES"]
    '1'
    """
    variables = {"CUDA_VISIBLE_DEVICES": device, "TPU_VISIBLE_CHIPS": device}
    variables |= dict.fromkeys(("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_PROCESS_BOUNDS"), "1,1,1")
    # The first process on a GPU takes three quarters of its memory by default.
    return variables if share == 1 else {**variables, "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 / share:.3f}"}


def run_job(job: Job, environment: Mapping[str, str], cores: Sequence[int], cache: Path | None) -> None:
    """Run a job as all that a child process does; the exit status says how it ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    platform_support.leave_terminal()
    platform_support.limit_to_cores(cores)
    os.environ.update(environment)
    log = os.open(Path(job.workdir) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    if cache is not None:
        cache_compiled(cache)
    sys.exit(run_point(job.call, job.config, job.fields, job.workdir, job.options))


def _stop_with_parent() -> None:
    """Ask this process to save and stop when its parent is gone."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _sigterm_blocked() -> Iterator[None]:
    """Let a process that starts here not hear SIGTERM, which `timeout` sends to the whole process group.

    This process hears it afterwards; were it ignored instead, it would be lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stop_asked() -> Iterator[Callable[[], int]]:
    """Catch SIGTERM and Ctrl-C; the function returns 0 to continue, 1 to let runs save and stop, 2 to kill them.

    Any number of SIGTERM means 1, because `timeout` sends it twice. A second Ctrl-C means 2.
    """
    heard: list[int] = []
    before = {number: signal.signal(number, lambda n, _: heard.append(n)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: min(len(heard), 2 if heard.count(signal.SIGINT) > 1 else 1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    variables = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS") if name in os.environ}
    _processes.start(job, variables)
    stopping = False
    while True:
        try:
            for ended in _processes.wait(1.0):
                return ended
        except KeyboardInterrupt:  # the sweep was asked to stop
            _processes.stop(hard=stopping)
            stopping = True


def check_address(address: str | None) -> None:
    """Raise at once if no cluster answers at an address; Ray itself tries for minutes.

    >>> check_address("127.0.0.1:1")
    Traceback (most recent call last):
    ConnectionError: --address=127.0.0.1:1: no Ray cluster answers there; ray start --head prints the address
    """
    host, colon, port = (address or "").rpartition(":")
    if not colon or "/" in host or not port.isdigit():
        return  # none, auto, or one of ray://
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(
            f"--address={address}: no Ray cluster answers there; ray start --head prints the address"
        ) from error


def count_slots(available: Mapping[str, float], each: Mapping[str, float]) -> int:
    """Return how many tasks fit into a cluster.

    >>> count_slots({"CPU": 32.0, "GPU": 8.0}, {"CPU": 1.0, "GPU": 2.0})
    4
    """
    slots = min(int(available.get(name, 0) // amount) for name, amount in each.items() if amount > 0)
    if slots < 1:
        needs, has = (", ".join(f"{name}={x:g}" for name, x in amounts.items()) for amounts in (each, available))
        raise ValueError(f"a point wants {needs}, and the cluster has {has}: ask for less with --resources=…")
    return slots


def read_resources(words: Sequence[str]) -> dict[str, float]:
    """Return the amounts that --resources names.

    >>> read_resources(["GPU=1", "CPU=4"])
    {'GPU': 1.0, 'CPU': 4.0}
    """
    amounts: dict[str, float] = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            amounts[name] = float(amount)
            if not name or not 0 <= amounts[name] < float("inf"):
                raise ValueError
        except ValueError:
            raise ValueError(f"--resources={word}: expected a name and a number, such as GPU=1") from None
    return amounts
