"""Figures of the server in the text format of Prometheus."""

import bisect
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

PREFIX = "bert_elmo_jax"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
INPUTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MINUTE = 60


class Histogram:
    """Counts of values up to each bound, as Prometheus reads them.

    >>> histogram = Histogram((1, 10))
    >>> histogram.add(7)
    >>> list(histogram.lines("sizes"))
    ['sizes_bucket{le="1"} 0', 'sizes_bucket{le="10"} 1', 'sizes_bucket{le="+Inf"} 1', 'sizes_sum 7.0', 'sizes_count 1']
    """

    def __init__(self, bounds: Sequence[float | int]):
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float | int) -> None:
        """Count a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the text format."""
        for bound, count in zip((*self.bounds, "+Inf"), itertools.accumulate(self.counts)):
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.total}"
        yield f"{name}_count {sum(self.counts)}"


class Metrics:
    """Figures since the start of the server; threads share them.

    >>> metrics = Metrics()
    >>> metrics.count_request("/predict", 200, 0.02)
    >>> 'bert_elmo_jax_requests_total{path="/predict",status="200"} 1' in metrics.render()
    True
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._now = threading.Lock(), now
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds, self.batches, self.batch_seconds = Histogram(SECONDS), Histogram(INPUTS), Histogram(SECONDS)
        self.recent: Counter[int] = Counter()  # inputs of each second of the last minute

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        with self._lock:
            self.requests[path, status] += 1
            self.seconds.add(seconds)

    def count_batch(self, inputs: int, seconds: float) -> None:
        """Count a batch that the model has computed."""
        with self._lock:
            self.batches.add(inputs)
            self.batch_seconds.add(seconds)
            second = int(self._now())
            self.recent[second] += inputs
            for old in [one for one in self.recent if one <= second - MINUTE]:
                del self.recent[old]

    def render(self, waiting: int = 0) -> str:
        """Return all figures; `waiting` is the number of inputs in the queue."""
        with self._lock:
            first = self._now() - MINUTE
            rate = sum(count for second, count in self.recent.items() if second > first) / MINUTE
            families = [
                ("requests_total", "counter", "Answers by path and status.", [
                    f'{PREFIX}_requests_total{{path="{path}",status="{status}"}} {count}'
                    for (path, status), count in sorted(self.requests.items())
                ]),
                _histogram("request_seconds", "Seconds until an answer.", self.seconds),
                _histogram("batch_inputs", "Inputs that were computed together.", self.batches),
                _histogram("batch_seconds", "Seconds of the model for a batch.", self.batch_seconds),
                ("queue_inputs", "gauge", "Inputs that wait for the model.", [f"{PREFIX}_queue_inputs {waiting}"]),
                ("inputs_per_second", "gauge", "Inputs per second in the last minute.",
                 [f"{PREFIX}_inputs_per_second {rate:.6g}"]),
            ]  # fmt: skip
        lines = [
            line
            for name, kind, help_text, values in families
            for line in (f"# HELP {PREFIX}_{name} {help_text}", f"# TYPE {PREFIX}_{name} {kind}", *values)
        ]
        return "\n".join([*lines, ""])


def _histogram(name: str, help_text: str, histogram: Histogram) -> tuple[str, str, str, list[str]]:
    return name, "histogram", help_text, list(histogram.lines(f"{PREFIX}_{name}"))
