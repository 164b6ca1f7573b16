"""One record for each run, every figure once: after resumes, kills and failures of the tracker. Clients are stubs."""

import collections
import json
import sys
import types

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.runs import trackers
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.trackers import IDS, RECORDS, check_trackers, find_group, open_trackers, replay
from bert_elmo_jax.runs.train_run import Run, train_run
from bert_elmo_jax.runs.trainable import Ending, Feed, Trainable
from bert_elmo_jax.train.metrics import read_metrics

Point = collections.namedtuple("Point", "key value timestamp step")


class MLflowStub(types.ModuleType):
    """The calls of MLflow's client that are made here, on records in memory."""

    def __init__(self):
        super().__init__("mlflow")
        self.records, self.down, self.killed_at = {}, False, None
        self.experiments, self.made_meanwhile = {}, ""  # by name; one that another run makes before ours does
        self.entities = types.SimpleNamespace(Metric=Point, Param=collections.namedtuple("Param", "key value"))

    def MlflowClient(self):
        return self

    def get_experiment_by_name(self, name):
        return self.experiments.get(name)

    def create_experiment(self, name):
        if self.down:
            raise ConnectionError("no connection")
        if self.made_meanwhile:
            self.experiments[name] = types.SimpleNamespace(experiment_id=self.made_meanwhile)
        if name in self.experiments:
            raise RuntimeError(f"RESOURCE_ALREADY_EXISTS: Experiment(name={name}) already exists.")
        self.experiments[name] = types.SimpleNamespace(experiment_id="1")
        return "1"

    def create_run(self, experiment, run_name, tags):
        number = f"id{len(self.records)}"
        record = {"experiment": experiment, "name": run_name, "tags": tags, "points": [], "params": {}, "files": []}
        self.records[number] = record
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=number))

    def log_batch(self, number, metrics=(), params=()):
        if self.down:
            raise ConnectionError("no connection")
        if any(point.step == self.killed_at for point in metrics):
            self.killed_at = None
            raise KeyboardInterrupt
        self.records[number]["points"] += metrics
        self.records[number]["params"] |= dict(params)

    def get_run(self, number):
        names = {point.key: point.value for point in self.records[number]["points"]}
        return types.SimpleNamespace(data=types.SimpleNamespace(metrics=names))

    def get_metric_history(self, number, name):
        return [point for point in self.records[number]["points"] if point.key == name]

    def update_run(self, number, status):
        self.records[number]["status"] = status

    set_terminated = update_run

    def log_artifact(self, number, path):
        self.records[number]["files"].append(path)

    def set_tag(self, number, name, value):
        self.records[number]["tags"][name] = value


class WandBStub(types.ModuleType):
    """The calls of W&B's client that are made here."""

    def __init__(self):
        super().__init__("wandb")
        self.starts, self.steps, self.files, self.summary = [], [], [], {}
        self.id = "w1"

    def init(self, **options):
        self.starts.append(options)
        return self

    def log(self, values, step):
        self.steps.append((step, values))

    def Artifact(self, name, type):
        return types.SimpleNamespace(add_file=self.files.append)

    def log_artifact(self, artifact):
        pass

    def finish(self, exit_code):
        self.starts[-1]["exit_code"] = exit_code


@pytest.fixture
def mlflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", stub := MLflowStub())
    return stub


@pytest.fixture
def wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setitem(sys.modules, "wandb", stub := WandBStub())
    return stub


def write(run, steps, names=("mlflow",), settings=None):
    with open_trackers(list(names), run, settings or {"a": {"b": 1}}) as opened:
        for step in steps:
            for tracker in opened:
                tracker.write(step, {"loss": float(step), "dev/f1": float("nan") if step % 2 else 0.5})
                tracker.flush()


def test_every_figure_is_there_once_after_a_resume_from_an_earlier_checkpoint(tmp_path, mlflow, wandb):
    write(tmp_path, range(4), RECORDS)
    write(tmp_path, range(2, 6), RECORDS)
    (record,) = mlflow.records.values()
    assert [(point.key, point.step) for point in record["points"] if point.key == "loss"] == [
        ("loss", step) for step in range(6)
    ]
    assert [point.step for point in record["points"] if point.key == "dev/f1"] == [0, 2, 4]
    assert record["params"] == {"a.b": "1"}
    assert [step for step, _ in wandb.steps] == list(range(6))
    assert [start["id"] for start in wandb.starts] == [None, "w1"]
    assert wandb.starts[1]["exit_code"] == 0


def test_a_kill_before_the_place_is_recorded_sends_nothing_twice(tmp_path, mlflow):
    write(tmp_path, range(4))
    (tmp_path / IDS).write_text(json.dumps({"mlflow": {"id": "id0", "step": 1}}))
    write(tmp_path, range(2, 6))
    assert [point.step for point in mlflow.records["id0"]["points"] if point.key == "loss"] == list(range(6))


def test_a_tracker_that_fails_gets_its_figures_later(tmp_path, mlflow, monkeypatch, capsys):
    monkeypatch.setattr(trackers, "RETRY_AFTER", 0.0)
    with open_trackers(["mlflow"], tmp_path, {}) as (tracker,):
        for step in range(5):
            mlflow.down = step in (1, 2)
            tracker.write(step, {"loss": 1.0})
            tracker.flush()
    assert [point.step for point in mlflow.records["id0"]["points"]] == list(range(5))
    assert capsys.readouterr().err.count("no connection; the training continues, and its figures are sent later") == 1


def test_a_run_that_began_without_a_tracker_sends_its_earlier_lines(tmp_path, mlflow):
    with open_trackers(["mlflow"], tmp_path, {}) as opened:
        replay(opened, [{"step": 1, "loss": 2.0, "dev/f1": None}, {"step": 2, "loss": 1.0}])
        opened[0].write(3, {"loss": 0.5})
    assert [(point.step, point.value) for point in mlflow.records["id0"]["points"]] == [(1, 2.0), (2, 1.0), (3, 0.5)]


def test_runs_that_start_together_have_one_experiment(tmp_path, mlflow):
    mlflow.down = True
    with pytest.raises(ValueError, match="--track=mlflow cannot begin its record: no connection"):
        write(tmp_path, [])
    mlflow.down, mlflow.made_meanwhile = False, "7"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [1])
    assert [record["experiment"] for record in mlflow.records.values()] == ["7", "7"]


def test_the_report_and_scores_are_attached_and_the_status_says_how_it_ended(tmp_path, mlflow, wandb):
    with open_trackers(list(RECORDS), tmp_path, {}) as opened:
        (tmp_path / "report.html").write_text("done")
        for tracker in opened:
            tracker.attach([tmp_path / "report.html"], {"dev.f1": 0.5})
    record = mlflow.records["id0"]
    assert (record["status"], record["files"], record["tags"]) == (
        "FINISHED",
        [str(tmp_path / "report.html")],
        {"dev.f1": "0.5"},
    )
    assert (wandb.files, wandb.summary) == ([str(tmp_path / "report.html")], {"dev.f1": 0.5})
    with pytest.raises(KeyError), open_trackers(["mlflow"], tmp_path, {}):
        raise KeyError
    assert record["status"] == "FAILED"


def test_runs_of_a_grid_or_a_sweep_have_a_group(tmp_path, mlflow):
    for folder in ("grid/runs/a", "sweep/points/b", "runs/c"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "grid" / "run.json").write_text("{}")
    groups = [find_group(tmp_path / folder) for folder in ("grid/runs/a", "sweep/points/b", "runs/c")]
    assert groups == ["grid", "sweep", ""]
    write(tmp_path / "sweep/points/b", [1])
    assert mlflow.records["id0"]["tags"]["group"] == "sweep"


def test_unusable_trackers_are_refused_before_the_training(tmp_path, monkeypatch, wandb):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"--track=mlflow needs mlflow: pip install 'bert_elmo_jax\[mlflow\]'"):
        check_trackers(["mlflow"])
    check_trackers(["wandb"])
    for name in ("WANDB_MODE", "WANDB_API_KEY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match="--track=wandb has no key: run `wandb login`"):
        check_trackers(["wandb"])
    (tmp_path / ".netrc").write_text("machine api.wandb.ai\n  login user\n  password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    check_trackers(["wandb"])


class Batches:
    """Batches of one number; the process is killed when it reads the batch `killed_at`."""

    def __init__(self, killed_at):
        self.at, self.killed_at = 0, killed_at

    def __next__(self):
        self.at += 1
        if self.at == self.killed_at:
            raise KeyboardInterrupt
        return {"x": np.full((1,), self.at, np.float32)}

    def state(self):
        return self.at

    def restore(self, position):
        self.at = position

    def close(self):
        pass


def train_small(folder, track=RECORDS, killed_at=None, score=lambda step: step / 10, patience=0):
    """Start or resume a run of 10 steps, with an evaluation every 3, a point every 4 and a checkpoint every 2 steps."""
    trainable = Trainable(
        summary="10 steps", params={"w": jnp.ones(1)}, seed=0, coefficients={"square": 1.0}, optimizer=optax.sgd(0.01),
        loss=lambda params, batch, key, carry: ({"square": ((params["w"] * batch["x"]).sum(), 1)}, {}, carry),
        rate=lambda step: jnp.float32(0.01), schedule=train.Schedule(10, 4, 3, 2), score="dev/f1",
        size=lambda batch: 1, describe=lambda workdir: None,
        open=lambda workdir, parallel: Feed(Batches(killed_at), lambda state: {"dev/f1": score(int(state.step))}),
        finish=lambda *arguments: Ending(), report_holds="", step_options={}, patience=patience,
    )  # fmt: skip
    train_run(Run(folder, {}, track=tuple(track)), train.ONE_DEVICE, trainable)


EVALUATED = [3, 6, 9, 10]


@pytest.mark.parametrize("first_start", ["sends", "is killed before it sends", "has no trackers"])
def test_every_evaluation_is_there_once_after_a_kill(tmp_path, mlflow, wandb, monkeypatch, first_start):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if first_start == "is killed before it sends":
            patch.setattr(trackers.Tracker, "flush", lambda self: None)
        train_small(tmp_path, () if first_start == "has no trackers" else RECORDS, killed_at=8)
    train_small(tmp_path)
    (record,) = mlflow.records.values()
    points = record["points"]
    assert [(point.step, point.value) for point in points if point.key == "dev/f1"] == [(n, n / 10) for n in EVALUATED]
    steps = sorted({*EVALUATED, 4, 8})
    assert [point.step for point in points if point.key == "loss"] == steps
    assert [step for step, _ in wandb.steps] == steps
    assert [values["dev/f1"] for _, values in wandb.steps if "dev/f1" in values] == [n / 10 for n in EVALUATED]


def test_the_evaluation_that_ends_a_run_early_is_there(tmp_path, mlflow):
    for _ in range(2):
        train_small(tmp_path, ["mlflow"], score=lambda step: 0.5, patience=1)
    assert [point.step for point in mlflow.records["id0"]["points"] if point.key == "dev/f1"] == [3, 6]


@pytest.mark.long
def test_a_killed_pretraining_goes_on_in_its_record(tmp_path, mlflow):
    config, _ = read_config("bert:toy")
    sizes = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "feed_forward_size": 16}
    config.update(steps=5, batch_size=4, length=16, log_every=1, checkpoint_every=2, eval_every=4, eval_batches=1)
    config.model.update(**sizes)
    config.toyworld.update(topics=2, documents=30, vocab_size=300, language="en")
    mlflow.killed_at = 3
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, tmp_path / "run", track=["mlflow"])
    assert mlflow.records["id0"]["status"] == "FAILED"
    assert pretrain(config, tmp_path / "run", track=["mlflow"]) == 0
    (record,) = mlflow.records.values()
    assert [point.step for point in record["points"] if point.key == "loss"] == [1, 2, 3, 4, 5]
    lines = {line["step"]: line for line in read_metrics(tmp_path / "run")}
    assert [point.value for point in record["points"] if point.key == "loss"] == [lines[n]["loss"] for n in range(1, 6)]
    assert (record["status"], record["files"]) == ("FINISHED", [str(tmp_path / "run" / "report.html")])
