"""The metrics of a run: one line per step in `metrics.jsonl`, and TensorBoard events."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from bert_elmo_jax.files import write_bytes


class Metrics:
    """Write `metrics.jsonl` and TensorBoard events in a run directory, each step once.

    A run that resumes from the checkpoint of `step` removes the lines of later steps.

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
        """Write the line of a step; `events=False` skips TensorBoard, which is slow with thousands of points."""
        line = {"step": step} | {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._file.write(json.dumps(line) + "\n")
        if events:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write everything to disk, so that no checkpoint precedes its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._events.flush()

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._events.close()


def read_metrics(run: str | Path) -> list[dict[str, Any]]:
    """Return the complete lines of a run, in order."""
    file = Path(run) / "metrics.jsonl"
    if not file.is_file():
        raise FileNotFoundError(f"{run} has no metrics.jsonl: no run was started there")
    lines = file.read_bytes().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]
