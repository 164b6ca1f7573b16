"""Run jobs in local processes or on a Ray cluster; the output is the same."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

J = TypeVar("J")
Report = Callable[[int], object]  # takes the bytes of text just processed; an exception from it stops the work
# Call `function(job, report)` for every job, in any order; return when all are done, or raise a job's exception.
Runner = Callable[[Callable[[Any, Report], None], Sequence[Any], Report], None]


def run_here(function: Callable[[J, Report], None], jobs: Sequence[J], report: Report) -> None:
    """Run jobs one after the other in this process, as small preparations do."""
    for job in jobs:
        function(job, report)


class Stopped(Exception):
    """Raised inside a worker to stop it."""


def local_runner(workers: int) -> Runner:
    """Return a runner with this many processes, each on one core."""

    def run(function: Callable[[J, Report], None], jobs: Sequence[J], report: Report) -> None:
        if not jobs:
            return
        # Not forked: the tokenizers' threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        done, stop = context.Value("q", 0), context.Value("b", 0)
        reported = 0
        with ProcessPoolExecutor(min(workers, len(jobs)), context, _begin_worker, (done, stop)) as pool:
            waiting = {pool.submit(_work, function, job) for job in jobs}
            try:
                while waiting:
                    finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                    now = done.value
                    report(now - reported)
                    reported = now
                    for future in finished:
                        future.result()
            except BrokenProcessPool as error:
                raise MemoryError(
                    "a worker process was killed, most likely because memory ran out; run again with fewer --workers: "
                    "finished shards are kept"
                ) from error
            except BaseException:
                stop.value = 1
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    return run


_done: Any = None
_stop: Any = None


def _begin_worker(done: Any, stop: Any) -> None:
    global _done, _stop  # set once per worker process
    _done, _stop = done, stop
    _disable_threads()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)  # if the parent is killed, its workers must end too

    threading.Thread(target=watch, daemon=True).start()


def _disable_threads() -> None:
    """Keep the tokenizer to one thread: workers already use all cores."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _work(function: Callable[[J, Report], None], job: J) -> None:
    def report(size: int) -> None:
        with _done.get_lock():
            _done.value += size
        if _stop.value:
            raise Stopped

    function(job, report)


def ray_runner(address: str | None = None, gpus: float = 0.0) -> Runner:
    """Return a runner on a Ray cluster that shares one file system and reserves so many GPUs for each job.

    `address=None` is the current cluster, else a local one.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("--runner=ray needs Ray: pip install 'bert_elmo_jax[cluster]'") from error

    def run(function: Callable[[J, Report], None], jobs: Sequence[J], report: Report) -> None:
        with _ray_session(ray, address):
            task = ray.remote(max_retries=3, num_gpus=gpus)(_ray_work)
            sizes = {task.remote(function, job, str(Path.cwd())): getattr(job, "size", 0) for job in jobs}
            waiting = list(sizes)
            while waiting:
                ready, waiting = ray.wait(waiting, num_returns=1, timeout=0.5)
                report(0)  # gives the caller a chance to stop
                for finished in ready:
                    try:
                        ray.get(finished)
                    except ray.exceptions.RayError as error:
                        for unfinished in waiting:
                            ray.cancel(unfinished)
                        raise _explain(ray.exceptions, error) from None
                    report(sizes[finished])

    return run


def _explain(exceptions: Any, error: Exception) -> BaseException:
    """Return what ends the program: the exception of a job, or one line about a worker that was lost."""
    if isinstance(error, exceptions.RayTaskError):
        return error.cause
    if isinstance(error, (exceptions.OutOfMemoryError, exceptions.WorkerCrashedError)):
        return MemoryError(
            "a worker of the Ray cluster was killed, most likely because memory ran out; run again on a cluster with "
            "fewer CPUs for each machine (ray start --num-cpus=…): what is finished stays"
        )
    reason = (str(error).strip().splitlines() or ["no reason"])[0]
    return ConnectionError(f"the Ray cluster lost a job ({type(error).__name__}: {reason}; see `ray status`)")


def _ray_work(function: Callable[[J, Report], None], job: J, folder: str) -> None:
    """Do a job in the caller's folder, for relative paths; where only absolute ones are shared, it may be missing."""
    with contextlib.suppress(OSError):
        os.chdir(folder)
    _disable_threads()
    function(job, lambda size: None)


@contextlib.contextmanager
def _ray_session(ray: Any, address: str | None) -> Iterator[None]:
    """Join a cluster or start a local one, and leave it at the end; keep a session that was already open."""
    if ray.is_initialized():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    where = {"address": address} if address else {"include_dashboard": False}
    ray.init(**where, log_to_driver=False, logging_level="ERROR")
    if handler is not None and threading.current_thread() is threading.main_thread():  # only it may set handlers
        # A local node replaces the handler by one that ends the process; restore the caller's.
        signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        ray.shutdown()
