"""SIGTERM and Ctrl-C for programs that start other runs."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_asked() -> Iterator[Callable[[], int]]:
    """Around the runs of a program that starts others: 0 go on, 1 let them save and stop, 2 end them at once.

    SIGTERM asks once, however often it comes: `timeout` sends it twice. In a hurry is who presses Ctrl-C a second time.

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
