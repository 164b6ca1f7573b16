"""What one start of a run costs: left in its directory, unless whoever started it hears of its end and counts it."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

UNHEARD = "unheard.jsonl"  # in a run directory: ends that nobody was there to hear of, a line each
DEVICE = "device.txt"
COUNTED = "BERT_ELMO_JAX_COUNTED"  # in the environment of a start that is counted by who started it


@contextlib.contextmanager
def cost_kept(run: Path, first: bool = True) -> Iterator[None]:
    """Around a start that nobody may count: typed in, or handed out by Slurm. Of one that is killed nothing is known.

    As in a sweep, which has imported the library once for all, the time of imports is not in it. Of several processes
    of one run the first keeps its own.

    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp())
    >>> with cost_kept(run):
    ...     pass
    >>> list(json.loads((run / UNHEARD).read_text()))
    ['seconds', 'processor']
    """
    began = os.times()
    try:
        yield
    finally:
        if first and COUNTED not in os.environ:
            *cores, seconds = (now - then for now, then in zip(os.times(), began, strict=True))
            add_unheard(run, {"seconds": round(seconds, 3), "processor": round(sum(cores), 3)})
            note_device(run)


def add_unheard(run: Path, cost: Mapping[str, Any]) -> None:
    """Leave what a start has cost where the next sweep finds it."""
    with contextlib.suppress(OSError), (run / UNHEARD).open("a", encoding="ascii") as file:
        file.write(json.dumps(cost) + "\n")


def note_device(run: Path) -> None:
    """What this process computed on, if it computed."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge._backends:
        import jax

        with contextlib.suppress(OSError):
            (run / DEVICE).write_text(f"{jax.device_count()} × {jax.devices()[0].device_kind}\n", encoding="utf-8")
