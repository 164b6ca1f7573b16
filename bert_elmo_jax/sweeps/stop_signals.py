"""SIGTERM and Ctrl-C for programs that start other runs."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_asked() -> Iterator[Callable[[], int]]:
    """Catch SIGTERM and Ctrl-C; the function returns 0 to continue, 1 to let runs save and stop, 2 to kill them.

    Any number of SIGTERM means 1, because `timeout` sends it twice. A second Ctrl-C means 2.

    >>> with stop_asked() as asked:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     signal.raise_signal(signal.SIGTERM)
    ...     asked()
    1
    """
    heard: list[int] = []
    before = {number: signal.signal(number, lambda n, _: heard.append(n)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: min(len(heard), 2 if heard.count(signal.SIGINT) > 1 else 1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
