"""Load batches onto the devices ahead of use, each with the position in the data after it."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Batches(Protocol):
    """The data of a training run: an iterator of batches with a position that JSON can hold."""

    def __next__(self) -> Mapping[str, np.ndarray]:
        """Return the next batch."""
        ...

    def state(self) -> Any:
        """Return the position after the last batch."""
        ...


class Fetched(NamedTuple):
    """A batch on the host and on the devices, and the position after it."""

    host: Mapping[str, np.ndarray]
    device: Any
    position: Any


class Prefetch:
    """Read and place up to `ahead` batches while the devices work; an error is raised in place of its batch.

    >>> class Count:
    ...     at = 0
    ...     def __next__(self):
    ...         self.at += 1
    ...         return {"x": np.array([self.at])}
    ...     def state(self):
    ...         return self.at
    >>> with Prefetch(Count(), put=dict) as batches:
    ...     [(int(batch.device["x"][0]), batch.position) for batch, _ in zip(batches, range(3))]
    [(1, 1), (2, 2), (3, 3)]
    """

    def __init__(self, batches: Batches, put: Callable[[Mapping[str, np.ndarray]], Any], ahead: int = 2):
        self._batches, self._put = batches, put
        self._queue: queue.Queue[Fetched | BaseException] = queue.Queue(ahead)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="prefetch")
        self._thread.start()

    def _read(self) -> None:
        item: Fetched | BaseException
        while not self._closed.is_set():
            try:
                batch = next(self._batches)
                item = Fetched(batch, self._put(batch), self._batches.state())
            except BaseException as error:
                item = error
            while not self._closed.is_set():
                try:
                    self._queue.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if isinstance(item, BaseException):
                return

    def __iter__(self) -> Iterator[Fetched]:
        return self

    def __next__(self) -> Fetched:
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._queue.put(item)  # a second call raises it again
            raise item
        return item

    def __enter__(self) -> "Prefetch":
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._thread.join()
