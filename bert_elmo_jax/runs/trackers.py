"""Records of runs in MLflow and Weights & Biases, which `--track=mlflow,wandb` keeps next to a run's own files.

A run has one record in each tracker, however often it is resumed: `trackers.json` in the run directory has its id and
the last step that it has. Figures are sent when `metrics.jsonl` is flushed, before the checkpoint that follows. A
tracker that fails never stops a training: its figures wait, and are sent later.
"""

import contextlib
import importlib
import math
import netrc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.train.metrics import TAG

IDS = "trackers.json"  # in a run directory
PROJECT = "bert_elmo_jax"  # unless MLFLOW_EXPERIMENT_NAME or WANDB_PROJECT names another
MOST_WAITING = 100_000  # steps that are kept while a tracker cannot be reached
RETRY_AFTER = 30.0  # seconds
LONGEST_PARAM = 250  # characters; all servers of MLflow accept so many


class Record(Protocol):
    """The record of one run in one tracker."""

    id: str

    def send(self, steps: Sequence[tuple[int, Mapping[str, float]]]) -> None:
        """Send the figures of steps."""
        ...

    def attach(self, files: Sequence[Path], scores: Mapping[str, float]) -> None:
        """Attach files, and set the final scores."""
        ...

    def close(self, status: str) -> None:
        """End the record for now: "finished", "stopped" or "failed"."""
        ...


class MLflowRecord:
    """A run of MLflow, through its client, which starts no thread. MLFLOW_TRACKING_URI names the server."""

    def __init__(self, workdir: Path, settings: Mapping[str, Any], record_id: str | None):
        self._mlflow = importlib.import_module("mlflow")
        self._client = self._mlflow.MlflowClient()
        self._last: dict[str, int] = {}  # the last step of each figure; a killed start may not have recorded its own
        if record_id is not None:
            self.id = record_id
            for name in self._client.get_run(self.id).data.metrics:
                self._last[name] = max(point.step for point in self._client.get_metric_history(self.id, name))
            self._client.update_run(self.id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        tags = {"group": group} if (group := find_group(workdir)) else {}
        self.id = self._client.create_run(self._find_experiment(name), run_name=workdir.name, tags=tags).info.run_id
        params = [
            self._mlflow.entities.Param(TAG.sub("_", name), str(value)[:LONGEST_PARAM])
            for name, value in flatten(settings).items()
        ]
        for at in range(0, len(params), 100):  # the most that a request may have
            self._client.log_batch(self.id, params=params[at : at + 100])

    def _find_experiment(self, name: str) -> str:
        """Return the number of an experiment, which is made if the server lacks it."""
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            try:
                return str(self._client.create_experiment(name))
            except Exception:  # of the server's error codes: a run that began at the same time may have made it
                experiment = self._client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        return str(experiment.experiment_id)

    def send(self, steps: Sequence[tuple[int, Mapping[str, float]]]) -> None:
        """Send the figures of steps; those that the record has are left out."""
        now = int(time.time() * 1000)
        metric = self._mlflow.entities.Metric
        points = [
            metric(TAG.sub("_", name), value, now, step)
            for step, values in steps
            for name, value in values.items()
            if step > self._last.get(TAG.sub("_", name), -1)
        ]
        for at in range(0, len(points), 1000):
            self._client.log_batch(self.id, metrics=points[at : at + 1000])
            for point in points[at : at + 1000]:
                self._last[point.key] = max(point.step, self._last.get(point.key, -1))

    def attach(self, files: Sequence[Path], scores: Mapping[str, float]) -> None:
        """Upload files, and set the scores as tags, which are no points of a curve."""
        for file in files:
            self._client.log_artifact(self.id, str(file))
        for name, value in scores.items():
            self._client.set_tag(self.id, TAG.sub("_", name), f"{value:.6g}")

    def close(self, status: str) -> None:
        """Set the status of the run."""
        self._client.set_terminated(self.id, {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}[status])


class WandBRecord:
    """A run of Weights & Biases; with WANDB_MODE=offline it is written below the run directory."""

    def __init__(self, workdir: Path, settings: Mapping[str, Any], record_id: str | None):
        self._wandb = importlib.import_module("wandb")
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT), id=record_id, resume="allow", name=workdir.name,
            group=find_group(workdir) or None, config=flatten(settings), dir=str(workdir),
        )  # fmt: skip
        self.id = str(self._run.id)

    def send(self, steps: Sequence[tuple[int, Mapping[str, float]]]) -> None:
        """Log the figures of steps."""
        for step, values in steps:
            self._run.log(dict(values), step=step)

    def attach(self, files: Sequence[Path], scores: Mapping[str, float]) -> None:
        """Log files as an artifact, and set the scores in the summary."""
        artifact = self._wandb.Artifact(f"report-{self.id}", type="report")
        for file in files:
            artifact.add_file(str(file))
        self._run.log_artifact(artifact)
        self._run.summary.update(dict(scores))

    def close(self, status: str) -> None:
        """Finish the run."""
        self._run.finish(exit_code=int(status == "failed"))


RECORDS: Mapping[str, Callable[[Path, Mapping[str, Any], str | None], Record]] = {
    "mlflow": MLflowRecord,
    "wandb": WandBRecord,
}


class Tracker:
    """Sends the figures of a run to its record in one tracker, each step once and in order."""

    def __init__(self, name: str, workdir: Path, settings: Mapping[str, Any]):
        self.name, self._file = name, workdir / IDS
        entry = read_json(self._file, default={}).get(name) or {}
        self._record = RECORDS[name](workdir, settings, entry.get("id"))
        self._sent = int(entry.get("step", -1))
        self._waiting: list[tuple[int, dict[str, float]]] = []
        self._failing, self._retry_at = False, 0.0
        self._keep_place()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add the figures of a step, unless the record has them; those that are not finite are left out."""
        last = self._waiting[-1][0] if self._waiting else self._sent
        if step > last and len(self._waiting) < MOST_WAITING:
            self._waiting.append((step, {name: value for name, value in values.items() if math.isfinite(value)}))

    def flush(self) -> None:
        """Send the waiting steps; if the tracker cannot be reached, keep it and say so once."""
        if self._failing and time.monotonic() < self._retry_at:
            return
        if self._waiting and self._try(lambda: self._record.send(self._waiting), "its figures are sent later"):
            self._sent, self._waiting = self._waiting[-1][0], []
            self._keep_place()

    def attach(self, files: Sequence[Path], scores: Mapping[str, float]) -> None:
        """Attach files and final scores to the record."""
        self._try(lambda: self._record.attach(files, scores), "its record has no report")

    def close(self, status: str = "stopped") -> None:
        """Send the waiting steps, and end the record."""
        self._retry_at = 0.0
        self.flush()
        self._try(lambda: self._record.close(status), f"{len(self._waiting):,} steps are in metrics.jsonl only")

    def _keep_place(self) -> None:
        content = read_json(self._file, default={})
        write_json(self._file, {**content, self.name: {"id": self._record.id, "step": self._sent}})

    def _try(self, action: Callable[[], None], consequence: str) -> bool:
        """Return True if an action of the tracker succeeds; its errors must not end a training."""
        started = time.monotonic()
        try:
            action()
        except Exception as error:
            ended = time.monotonic()  # a client may try for minutes: training takes most of the time
            self._retry_at = ended + max(RETRY_AFTER, 20 * (ended - started))
            if not self._failing:
                reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
                say(f"--track={self.name}: {reason}; the training continues, and {consequence}")
            self._failing = True
            return False
        self._failing = False
        return True


def check_trackers(names: Sequence[str]) -> None:
    """Raise unless all trackers are known, installed, and have the key that they need.

    >>> check_trackers(["mlfow"])
    Traceback (most recent call last):
    ValueError: --track=mlfow is not known; use mlflow, wandb; did you mean mlflow?
    """
    for name in names:
        if name not in RECORDS:
            raise ValueError(f"--track={name} is not known; use {', '.join(RECORDS)}{did_you_mean(name, RECORDS)}")
        try:
            importlib.import_module(name)
        except ImportError:
            raise ImportError(f"--track={name} needs {name}: pip install 'bert_elmo_jax[{name}]'") from None
    if "wandb" in names and not _has_wandb_key():
        raise ValueError(
            "--track=wandb has no key: run `wandb login`, set WANDB_API_KEY, or WANDB_MODE=offline to write files only"
        )


def _has_wandb_key() -> bool:
    if os.environ.get("WANDB_MODE") in ("offline", "dryrun", "disabled") or os.environ.get("WANDB_API_KEY"):
        return True
    host = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai").split("//")[-1].split("/")[0].split(":")[0]
    for file in (os.environ.get("NETRC"), "~/.netrc", "~/_netrc"):
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            if file and netrc.netrc(Path(file).expanduser()).authenticators(host):
                return True
    return False


@contextlib.contextmanager
def open_trackers(names: Sequence[str], workdir: Path, settings: Mapping[str, Any]) -> Iterator[list[Tracker]]:
    """Yield the trackers of a run; their records end as finished if the run has a report, as stopped, or as failed."""
    trackers: list[Tracker] = []
    status = "failed"
    try:
        for name in names:
            try:
                trackers.append(Tracker(name, workdir, settings))
            except Exception as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
                remedy = "check its server and key, or leave it out"
                raise ValueError(f"--track={name} cannot begin its record: {reason}; {remedy}") from error
        yield trackers
        status = "finished" if (workdir / "report.html").is_file() else "stopped"
    finally:
        for tracker in trackers:
            tracker.close(status)


def replay(trackers: Iterable[Tracker], lines: Iterable[Mapping[str, Any]]) -> None:
    """Send the lines of `metrics.jsonl` that records lack, as after a start without them."""
    lines = list(lines)
    for tracker in trackers:
        for line in lines:
            tracker.write(line["step"], {name: v for name, v in line.items() if name != "step" and v is not None})
        tracker.flush()


def flatten(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested settings with dots in their names.

    >>> flatten({"steps": 10, "optimizer": {"name": "adamw"}})
    {'steps': 10, 'optimizer.name': 'adamw'}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flatten(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return flat


def find_group(workdir: Path) -> str:
    """Return the name of the grid or sweep that a run belongs to, or "".

    >>> find_group(Path("work/my_sweep/points/base-1f3a")), find_group(Path("runs_of_may/base"))
    ('my_sweep', '')
    """
    folder = Path(workdir).absolute().parent
    # A grid is a run directory with the folder `runs`.
    grouped = folder.name == "points" or (folder.name == "runs" and (folder.parent / "run.json").is_file())
    return folder.parent.name if grouped else ""


def list_scores(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a `result.json`, named by part and score.

    >>> list_scores({"score": "f1", "dev": {"f1": 0.5}, "step": 3})
    {'dev.f1': 0.5, 'step': 3.0}
    """
    numbers = flatten(result).items()
    return {name: float(value) for name, value in numbers if type(value) in (int, float) and math.isfinite(value)}
