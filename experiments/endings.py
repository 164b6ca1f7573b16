"""How a program ends: every expected trouble in one message on standard error, with a status of its own."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from absl import flags, logging

from bert_elmo_jax import train
from experiments.command_line import INTERRUPTED, refuse


@contextmanager
def endings(program: str, argv: Sequence[str], usage: str, stopped: str = "stopped") -> Iterator[None]:
    """Around all that a program does: refused with `usage` if words are left over; `stopped` is said on an interrupt.

    The checkpointing library tells every file it touches: it is quiet unless --verbosity is given.
    """
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)
    try:
        if len(argv) > 1:
            raise ValueError(f"unexpected argument {argv[1]!r}; use {usage}")
        yield
    except train.Diverged as error:
        refuse(program, error, train.DIVERGED)
    except (ValueError, TypeError, OSError, ImportError) as error:
        refuse(program, error)
    except KeyboardInterrupt:
        refuse(program, stopped, INTERRUPTED)


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
