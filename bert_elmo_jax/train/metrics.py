"""The metrics of a run: one line per step in `metrics.jsonl`, TensorBoard events, and other writers."""

import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2, summary_pb2

from bert_elmo_jax.files import write_bytes
from bert_elmo_jax.json_values import parse_json, whole_number

TAG = re.compile(r"[^-/\w.]")  # what TensorBoard does not want in names


@runtime_checkable
class Writer(Protocol):
    """Receives the figures of steps, in order: TensorBoard, or a tracker."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the figures of a step."""
        ...

    def flush(self) -> None:
        """Write everything to where it survives a kill."""
        ...

    def close(self) -> None:
        """Flush, and end."""
        ...


class Events:
    """Write an event file of TensorBoard, which forgets the steps of earlier files after `step`.

    tensorboardX's own `SummaryWriter` writes in a thread: if the disk is full, the thread ends, and the training waits
    for it without end.
    """

    def __init__(self, folder: Path, step: int):
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = EventsWriter(str(folder / "events"))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._writer.write_event(event_pb2.Event(wall_time=time.time(), step=step + 1, session_log=start))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the figures of a step."""
        for name, value in values.items():
            point = summary_pb2.Summary.Value(tag=TAG.sub("_", name), simple_value=value)
            summary = summary_pb2.Summary(value=[point])
            self._writer.write_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Write everything to disk."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything to disk, and close the file."""
        self._writer.close()


class Metrics:
    """Write `metrics.jsonl` and TensorBoard events, each step once: removes lines after the `step` to resume from.

    Other `writers` get the same values as TensorBoard; the code that opened them closes them.
    """

    def __init__(self, run: str | Path, step: int, writers: Sequence[Writer] = ()):
        file = Path(run) / "metrics.jsonl"
        lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
        complete = [line for line in lines if line.endswith(b"\n") and _read_line(line, file)["step"] <= step]
        if len(complete) < len(lines):
            write_bytes(file, b"".join(complete))
        self._file = open(file, "a", encoding="utf-8")  # noqa: SIM115 -- closed by __exit__
        self._events = Events(Path(run) / "events", step)
        self._writers: list[Writer] = [self._events, *writers]

    def write(self, step: int, values: Mapping[str, float], *, events: bool = True) -> None:
        """Write the line of a step; `events=False` skips the other writers, which are slow with thousands of points."""
        line = {"step": step} | {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._file.write(json.dumps(line) + "\n")
        if events:
            for writer in self._writers:
                writer.write(step, values)

    def flush(self) -> None:
        """Write everything to disk, so that no checkpoint precedes its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())
        for writer in self._writers:
            writer.flush()

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._file.close()
        finally:
            self._events.close()


def read_metrics(run: str | Path) -> list[dict[str, Any]]:
    """Return the complete lines of a run, in order."""
    file = Path(run) / "metrics.jsonl"
    if not file.is_file():
        raise FileNotFoundError(f"{run} has no metrics.jsonl: no run was started there")
    lines = file.read_bytes().splitlines(keepends=True)
    return [_read_line(line, file) for line in lines if line.endswith(b"\n")]


def _read_line(line: bytes, file: Path) -> dict[str, Any]:
    """Return a line of `metrics.jsonl`; raise if it is none."""
    metrics = parse_json(line.decode(errors="replace"), file)
    if not isinstance(metrics, dict) or not whole_number().accepts(metrics.get("step")):
        raise ValueError(f"{file} has the line {line[:60]!r}; expected an object with a step: restore the file")
    return metrics
