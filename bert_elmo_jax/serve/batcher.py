"""One thread computes the inputs of all requests: those that wait at the same time are computed together."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bert_elmo_jax.serve.limits import RequestError, stopping_error

log = logging.getLogger(__name__)
Compute = Callable[[Any, list[Any]], Sequence[Any]]  # (kind of work, inputs) -> one result for each input


@dataclass(frozen=True)
class Job:
    """The inputs of one request; jobs with equal `work` are computed together."""

    work: Hashable
    inputs: list[Any]
    results: Future[list[Any]] = field(default_factory=Future)


class Batcher:
    """A bounded queue of jobs, and the thread that computes them.

    A batch has the oldest job and others with the same work, up to `batch_size` inputs or one job. There is no pause to
    wait for more: the jobs that arrive while a batch is computed are the next batch.

    >>> batcher = Batcher(lambda work, inputs: [text.upper() for text in inputs], queue_size=8, batch_size=4)
    >>> batcher.submit("predict", ["a", "b"]).result()
    ['A', 'B']
    >>> batcher.stop()
    """

    def __init__(
        self,
        compute: Compute,
        *,
        queue_size: int,
        batch_size: int,
        observe: Callable[[int, float], None] = lambda inputs, seconds: None,
    ):
        self._compute, self._queue_size, self._batch_size, self._observe = compute, queue_size, batch_size, observe
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self.waiting = 0  # inputs in the queue
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    def submit(self, work: Hashable, inputs: list[Any]) -> Future[list[Any]]:
        """Return the future results of inputs; raise if the queue is full or the server stops."""
        with self._changed:
            if self._stopping:
                raise stopping_error()
            if self._jobs and self.waiting + len(inputs) > self._queue_size:
                raise RequestError(429, f"{self.waiting} inputs are waiting already: try again later", retry_after=1)
            job = Job(work, inputs)
            self._jobs.append(job)
            self.waiting += len(inputs)
            self._changed.notify()
        return job.results

    def stop(self, seconds: float | None = None) -> None:
        """Compute the jobs that were accepted, and end the thread; wait for that, at most `seconds` if they are set."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(seconds)

    @property
    def ended(self) -> bool:
        """True if the thread has ended, after `stop`."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        while jobs := self._take_batch():
            # A request whose time was up is not computed.
            if current := [job for job in jobs if job.results.set_running_or_notify_cancel()]:
                self._compute_jobs(current)

    def _take_batch(self) -> list[Job]:
        """Return the jobs of the next batch; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._stopping)
            if not self._jobs:
                return []
            batch, later_jobs = [self._jobs.popleft()], list[Job]()
            size = len(batch[0].inputs)
            for job in self._jobs:
                if job.work == batch[0].work and size + len(job.inputs) <= self._batch_size:
                    batch.append(job)
                    size += len(job.inputs)
                else:
                    later_jobs.append(job)
            self._jobs = deque(later_jobs)
            self.waiting -= size
            return batch

    def _compute_jobs(self, jobs: list[Job]) -> None:
        started = time.perf_counter()
        try:
            inputs = [value for job in jobs for value in job.inputs]
            results = list(self._compute(jobs[0].work, inputs))
            if len(results) != len(inputs):
                raise RuntimeError(f"{len(results)} results for {len(inputs)} inputs")
        except Exception as error:
            if len(jobs) == 1:
                log.warning("a request failed: %s", error, exc_info=not isinstance(error, ValueError | TypeError))
                jobs[0].results.set_exception(error)
            else:  # one bad request does not harm the others
                for job in jobs:
                    self._compute_jobs([job])
            return
        self._observe(len(inputs), time.perf_counter() - started)
        for job in jobs:
            job.results.set_result(results[: len(job.inputs)])
            del results[: len(job.inputs)]
