"""Fine-tuning of every kind of task, from a file to predictions; killed and resumed; refused with one message."""

import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.inference.run_directory import best_step
from bert_elmo_jax.runs.config_files import list_recipes, read_config
from bert_elmo_jax.train.checkpoint import load_params, saved_steps
from bert_elmo_jax.train.metrics import read_metrics

from .task_files import WRITERS, write_model, write_task

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "bert")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return {task: write_task(folder / task, task) for task in WRITERS}


def config_of(fields, **changes):
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({"epochs": 2.0, "batch_size": 16, "max_length": 32, **fields})
    config.optimizer.update({"name": "adamw", "learning_rate": 5e-3})
    config.update_from_flattened_dict(changes)
    return config


def run(program, config, workdir, init):
    """Run in this process, and return the exit status."""
    return program("bert_elmo_jax.runs.finetuning").finetune(config, workdir, init=str(init))


@pytest.mark.parametrize("task", ["entities", pytest.param("swag", marks=pytest.mark.long), "squad"])
def test_from_a_file_to_predictions(program, task, files, model, tmp_path, capsys):
    config = config_of(files[task], epochs=1.0, dropout=0.0)
    assert run(program, config, tmp_path / "run", model) == 0
    said = capsys.readouterr().err
    assert re.search(
        rf"^{tmp_path / 'run'}: {task}, 4 steps of 16 rows \(\d+ are an epoch\), on \d+ × cpu$", said, re.M
    )
    assert re.search(r"^padding: \d+\.\d% of positions", said, re.M)
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    lines = read_metrics(tmp_path / "run")
    score = f"dev/{result['score']}"
    assert [line["step"] for line in lines if score in line] == [4]
    tuned = load(tmp_path / "run")
    assert isinstance(tuned, TaskModel)
    assert tuned.task.max_length == 32
    dev = read_examples(files[task]["dev"], tuned.task)
    predictions = tuned.predict_examples(dev, batch_size=7)
    assert len(predictions) == len(dev) == 32
    assert all(len(str(prediction)) < 300 for prediction in predictions)
    best = max(line[score] for line in lines if score in line)
    assert result["dev"][result["score"]] == pytest.approx(best, abs=1e-3)
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Attention over" in report
    assert "http" not in report.replace("http-equiv", "")


@pytest.mark.usefixtures("one_device")
def test_learning(program, files, model, tmp_path):
    """The words determine the labels, so a model that learns finds them."""
    config = config_of(files["classification"], epochs=25.0, eval_every=50, dropout=0.0)
    run(program, config, tmp_path / "run", model)
    tuned = load(tmp_path / "run")
    assert [p.label for p in tuned.predict(["좋다 영화", "the film was bad"])] == ["재미", "노잼"]
    again = tuned.predict(["the film was bad", "좋다 영화"] * 20)
    assert [p.label for p in again] == ["노잼", "재미"] * 20
    assert sum(again[0].probabilities.values()) == pytest.approx(1.0)


WAYS = {
    "frozen": {"transfer": "frozen"},
    "top_down": {"transfer": "top_down", "epochs": 3.0, "layer_decay": 0.5, "class_weights": "balanced"},
    "features": {"transfer": "frozen", "features.layers": "all", "features.combine": "mix", "features.lstm_layers": 1},
}


@pytest.mark.usefixtures("one_device")
@pytest.mark.parametrize("way", [pytest.param(way, marks=[pytest.mark.long] * (way == "top_down")) for way in WAYS])
def test_ways_of_transfer(program, way, files, model, tmp_path, capsys):
    config = config_of(files["sst2"], dropout=0.0, **{"epochs": 1.0, "features.lstm_size": 4, **WAYS[way]})
    assert run(program, config, tmp_path / "run", model) == 0
    before, after = load_params(model)[1]["encoder"], load_params(tmp_path / "run")[1]
    before = {name: before[name] for name in after["encoder"]}  # features need no pooler
    same = jax.tree.map(lambda a, b: bool((a == b).all()), before, after["encoder"])
    moved = {name: not all(jax.tree.leaves(part)) for name, part in same.items()}
    if config.transfer == "frozen":
        assert not any(moved.values())
    else:
        assert all(moved.values())
    assert np.isfinite(read_metrics(tmp_path / "run")[-1]["loss"])
    tuned = load(tmp_path / "run")
    assert set(tuned.params) == {"encoder", "classify", *(["reader"] if way == "features" else [])}
    assert tuned.predict(["좋다 영화"])[0].label in ("0", "1")
    if way == "top_down":  # whose optimiser has a state of its own to be read back
        assert run(program, config, tmp_path / "run", model) == 0
        assert "resuming from step 12" in capsys.readouterr().err


def test_when_each_part_joins(program):
    layers = {f"layer_{n}": {"kernel": 0} for n in range(3)}
    params = {"encoder": {"embeddings": {"word": 0}, **layers, "pooler": {"bias": 0}}, "classify": {"bias": 0}}

    def starts(new_pooler=False, **changes):
        config = config_of({}, **changes)
        found = program("bert_elmo_jax.runs.transfer").plan_unfreezing(
            config, get_family("bert").depth_of, params, 10, ("encoder/pooler/.*",) if new_pooler else ()
        )
        encoder = {name: next(iter(part.values())) for name, part in found["encoder"].items()}
        parts = (found["classify"]["bias"], *(encoder[name] for name in ("pooler", "layer_2", "layer_0", "embeddings")))
        assert all(part.steps[0][1:] == (None,) for part in parts)
        return [part.steps[0][0] for part in parts]

    assert starts(transfer="head_first") == [0, 10, 10, 10, 10]
    assert starts(transfer="head_first", head_epochs=0.5) == [0, 5, 5, 5, 5]
    assert starts(transfer="top_down") == [0, 10, 10, 30, 40]
    assert starts(transfer="gradual") == starts(transfer="top_down")
    assert starts(transfer="top_down", new_pooler=True) == [0, 0, 10, 30, 40]
    with pytest.raises(ValueError, match=r"config.head_epochs=0\.0 is less than a step"):
        starts(transfer="head_first", head_epochs=0.0)


def test_weights_of_labels(program, files):
    task_data = program("bert_elmo_jax.runs.task_data")
    data = task_data.read_data(config_of(files["classification"]))
    count = [sum(example.label == label for example in data.train) for label in data.task.labels]
    balanced = task_data.class_weights("balanced", data.task, data.train)
    assert [weight * n for weight, n in zip(balanced, count)] == pytest.approx([32.0, 32.0])
    assert task_data.class_weights("재미=3,노잼=1.5", data.task, data.train) == [1.5, 3.0]
    assert task_data.class_weights("", data.task, data.train) is None
    for wrong in ("재미=3", "재미=3,노잼=0", "재미=3,노잼=a", "재미=3,재미=1", "재미=3,노잼=1,so=1"):
        with pytest.raises(ValueError, match="expected balanced, or a number above 0 for each of the 2 labels"):
            task_data.class_weights(wrong, data.task, data.train)


@pytest.mark.usefixtures("one_device")
def test_the_best_on_dev_is_loaded_and_patience_ends_a_run(program, files, model, tmp_path):
    config = config_of(files["sst2"], epochs=40.0, patience=2, dropout=0.0)
    config.optimizer.learning_rate = 1e-7  # nothing gets better
    assert run(program, config, tmp_path / "run", model) == 0
    evaluated = [line for line in read_metrics(tmp_path / "run") if "dev/accuracy" in line]
    assert len(read_metrics(tmp_path / "run")) < 40 * 4
    scores = [line["dev/accuracy"] for line in evaluated]
    assert max(scores) not in scores[-2:] or scores.index(max(scores)) == len(scores) - 3
    best = best_step(tmp_path / "run")
    assert best in saved_steps(tmp_path / "run")
    metrics = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    assert run(program, config, tmp_path / "run", model) == 0  # done is done
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == metrics


@pytest.mark.usefixtures("one_device")
def test_a_grid_keeps_the_best(program, files, model, tmp_path, capsys):
    config = config_of(files["sst2"], epochs=1.0, dropout=0.0)
    finetune = program("bert_elmo_jax.runs.finetuning").finetune
    assert finetune(config, tmp_path, init=str(model), seeds=["0", "1"]) == 0
    runs = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))
    best = max(runs["runs"], key=lambda of: of["dev"]["accuracy"])
    scores = [of["dev"]["accuracy"] for of in runs["runs"]]
    tuned = load(tmp_path)
    dev = read_examples(files["sst2"]["dev"], tuned.task)
    right = [p.label == e.label for p, e in zip(tuned.predict_examples(dev), dev)]
    assert np.mean(right) == pytest.approx(best["dev"]["accuracy"]) == max(scores)
    kept = [folder for folder in (tmp_path / "runs").iterdir() if (folder / "checkpoints").is_dir()]
    assert [folder.name for folder in kept] == [runs["best"]]
    said = capsys.readouterr().err
    assert "(2 seeds)" in said
    assert "run 2 of 2: seed=1" in said
    assert finetune(config, tmp_path, init=str(model), seeds=["0", "1"]) == 0
    assert "run 1 of" not in capsys.readouterr().err


# As people run it.

FLAGS = ["--config.epochs=6", "--config.batch_size=8", "--config.eval_every=16", "--config.checkpoint_every=4"]


def command(fields, workdir, model, *more):
    given = [f"--{name}={value}" for name, value in fields.items()]
    return [
        sys.executable,
        "-m",
        "experiments.finetune",
        *given,
        f"--init={model}",
        f"--workdir={workdir}",
        *FLAGS,
        *more,
    ]


@pytest.mark.long
def test_killed_anywhere_it_ends_as_if_left_alone(files, model, tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    done = subprocess.run(command(files["qnli"], alone, model), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "caches").rglob("*-cache"))  # left to itself, a run keeps what it has compiled
    for steps in (4, 24):
        process = subprocess.Popen(command(files["qnli"], killed, model), cwd=ROOT, stderr=subprocess.DEVNULL)
        while not any(int(path.parent.name) >= steps for path in killed.glob("checkpoints/*/files.json")):
            time.sleep(0.02)
            assert process.poll() in (None, 0)
            if process.poll() == 0:
                break
        process.kill()
        process.wait()
    done = subprocess.run(command(files["qnli"], killed, model), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (alone / "metrics.jsonl").read_bytes() == (killed / "metrics.jsonl").read_bytes()
    ours, theirs = load_params(alone), load_params(killed)
    assert ours[0] == theirs[0]
    jax.tree.map(np.testing.assert_array_equal, ours[1], theirs[1])
    assert (alone / "result.json").read_text() == (killed / "result.json").read_text()


RECIPES = list(list_recipes("experiments/configs/finetune.py")[0])
KINDS = {"nsmc": "sst2", "stsb": "regression", "pos": "ud_upos", "entities_features": "entities", "squad2": "squad"}
KINDS |= dict.fromkeys(("base", "small", "quickstart"), "classification")  # of any task


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_makes_a_step(program, name, files, model):
    """The recipe with other data is traced, but not computed."""
    from bert_elmo_jax import train
    from bert_elmo_jax.data.tasks.batches import collate
    from bert_elmo_jax.runs.with_head import prepare_head

    config, said = read_config(f"finetune:{name}")
    for part in ("xpected score:", "Cost:", "Command:", "finetune" if name == "base" else f"--config=finetune:{name}"):
        assert part in said
    theirs = config.task
    config.update(files[KINDS.get(name, name)])
    transfer, task_data = program("bert_elmo_jax.runs.with_head"), program("bert_elmo_jax.runs.task_data")
    if config.features.layers:
        config.features.update({"layers": "-2,-1", "lstm_size": 8})  # the model has two, and is small
    data, start = task_data.read_data(config), transfer.start_head(config, str(model), None)
    assert not theirs or task_data.task_named(theirs).kind == data.task.kind
    ready = prepare_head(config, data, start)
    step = train.make_step(ready.loss, ready.method, ready.coefficients)
    batch = collate(ready.rows[:4], 4, ready.task.max_length, 0)
    state, metrics = jax.eval_shape(step, train.new_state(ready.params, ready.method, jax.random.key(0)), batch)
    assert jax.tree.structure(state.params) == jax.tree.structure(ready.params)
    assert metrics["loss"].shape == ()
