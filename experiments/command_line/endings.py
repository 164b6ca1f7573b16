"""How a program ends: every expected trouble in one message on standard error, with a status of its own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from absl import flags, logging

from bert_elmo_jax import train
from bert_elmo_jax.train.run_guard import INTERRUPTED
from experiments.command_line.start import refuse


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
