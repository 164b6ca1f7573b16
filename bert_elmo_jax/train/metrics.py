"""The metrics of a run: one line per step in `metrics.jsonl`, TensorBoard events, and the curves in `report.html`."""

import html
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2, summary_pb2

from bert_elmo_jax.files import read_json, write_bytes
from bert_elmo_jax.report.figures import Curve
from bert_elmo_jax.report.page import draw_figures, draw_json, write_page
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.train.remarks import find_remarks

TAG = re.compile(r"[^-/\w.]")  # what TensorBoard does not want in names
# The units of metrics, by the end of their names; any other is labelled with its name.
UNITS = {
    "accuracy": "share right, from 0 to 1 (higher is better)", "perplexity": "perplexity (lower is better)",
    "loss": "nats (lower is better)", "learning_rate": "factor of an update",
}  # fmt: skip


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

    def write(self, step: int, name: str, value: float) -> None:
        """Write a figure of a step."""
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
    """Write `metrics.jsonl` and TensorBoard events, each step once: removes lines after the `step` to resume from."""

    def __init__(self, run: str | Path, step: int):
        file = Path(run) / "metrics.jsonl"
        lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
        kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["step"] <= step]
        if len(kept) < len(lines):
            write_bytes(file, b"".join(kept))
        self._file = open(file, "a", encoding="utf-8")  # noqa: SIM115 -- closed by __exit__
        self._events = Events(Path(run) / "events", step)

    def write(self, step: int, values: Mapping[str, float], *, events: bool = True) -> None:
        """Write the line of a step; `events=False` skips TensorBoard, which is slow with thousands of points."""
        line = {"step": step} | {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._file.write(json.dumps(line) + "\n")
        if events:
            for name, value in values.items():
                self._events.write(step, name, value)

    def flush(self) -> None:
        """Write everything to disk, so that no checkpoint precedes its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._events.flush()

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
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def draw_metric(name: str, curve: Sequence[tuple[float, float]]) -> Curve:
    """Return the curve of a metric with its unit, and a sentence about its first, last and extreme values."""
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), name.rpartition("/")[2])
    values = [value for _, value in curve]
    first, last, low, high = map(format_number, (values[0], values[-1], min(values), max(values)))
    note = f"From {first} to {last}; never below {low}, never above {high}."
    return Curve(f"{name}: {last}", curve, name != "learning_rate", unit, note)


def write_report(run: str | Path, sections: Sequence[tuple[str, str]] = (), remarks: Sequence[str] = ()) -> Path:
    """Write the curves of `metrics.jsonl`, further sections (heading, HTML), and the configuration in `run.json`.

    `remarks`, and those on the metrics, come first.

    >>> import tempfile
    >>> run = tempfile.mkdtemp()
    >>> with Metrics(run, 0) as metrics:
    ...     metrics.write(1, {"loss": 2.0}); metrics.write(2, {"loss": 1.0})
    >>> write_report(run).read_text(encoding="utf-8").count("<svg")
    1
    """
    folder = Path(run)
    lines = read_metrics(folder)
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.items():
            if name != "step" and value is not None:
                curves.setdefault(name, []).append((float(line["step"]), float(value)))
    # The best checkpoint is chosen by a score to maximise; where that is a loss with its sign changed, it is left out.
    negated = [[(step, -value) for step, value in curve] for curve in curves.values()]
    shown = [name for name in curves if curves[name][-1][1] >= 0 or curves[name] not in negated]
    names = sorted(shown, key=lambda name: ("/" not in name, name != "loss", name))  # held-out values first
    figures = [draw_metric(name, curves[name]) for name in names]
    about = (
        f"<p>{len(lines):,} steps. A thin line is every step, a thick line a running mean.</p>{draw_figures(figures)}"
    )
    settings = draw_json(read_json(folder / "run.json", default={}))
    if remarks := [*remarks, *find_remarks(lines)]:
        about = f"<ul class=remarks>{''.join(f'<li>{html.escape(remark)}</li>' for remark in remarks)}</ul>{about}"
    return write_page(folder / "report.html", folder.name, [("", about), *sections, ("Configuration", settings)])
