"""What a run says of itself: a line a step in `metrics.jsonl`, and the same for TensorBoard."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from bert_elmo_jax.files import write_bytes


class Metrics:
    """Writes `metrics.jsonl` and TensorBoard's events of a run directory, every step once.

    Opened at a step (that of the checkpoint a run goes on from), it drops what was written of later ones.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> for at in (0, 2):
    ...     with Metrics(run, at) as metrics:
    ...         for step in (at + 1, at + 2, at + 3):
    ...             metrics.write(step, {"loss": 1 / step})
    >>> [line["step"] for line in read_metrics(run)]
    [1, 2, 3, 4, 5]
    """

    def __init__(self, run: str | Path, step: int):
        file = Path(run) / "metrics.jsonl"
        lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
        kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["step"] <= step]
        if len(kept) < len(lines):
            write_bytes(file, b"".join(kept))
        self._file = open(file, "a", encoding="utf-8")  # noqa: SIM115 -- closed by __exit__
        self._events = SummaryWriter(str(Path(run) / "events"), purge_step=step + 1)

    def write(self, step: int, values: Mapping[str, float], *, events: bool = True) -> None:
        """One step's line; `events=False` leaves it out of TensorBoard, which draws thousands of points slowly."""
        line = {"step": step, **{name: _finite(value) for name, value in values.items()}}
        self._file.write(json.dumps(line) + "\n")
        if events:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def flush(self) -> None:
        """See everything onto the disk: a checkpoint must not come before its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._events.flush()

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._events.close()


def read_metrics(run: str | Path) -> list[dict[str, Any]]:
    """The lines of a run, the first step first; of a run that is being written, those that are whole."""
    file = Path(run) / "metrics.jsonl"
    if not file.is_file():
        raise FileNotFoundError(f"{run} has no metrics.jsonl: no run was begun there")
    lines = file.read_bytes().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
