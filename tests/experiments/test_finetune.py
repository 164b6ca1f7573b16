"""Fine-tuning of every kind of task, from a file to predictions; ways of transfer, patience, grids, and recipes.

tests/campaigns/test_kills.py kills such runs.
"""

import functools
import importlib
import json
import re
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.tasks.batches import collate
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference import TaskModel
from bert_elmo_jax.inference.run_directory import best_step, is_run_directory
from bert_elmo_jax.runs import finetuning
from bert_elmo_jax.runs.config_files import list_recipes, read_config
from bert_elmo_jax.runs.finetuning import (
    TaskJob,
    apply_setting,
    apply_to_task,
    check_examples,
    finetune,
    finish_grid,
    name_folder,
    run_grid,
)
from bert_elmo_jax.runs.task_data import class_weights, read_data, task_named
from bert_elmo_jax.runs.task_kinds import find_kind
from bert_elmo_jax.runs.train_run import Run
from bert_elmo_jax.runs.transfer import plan_unfreezing
from bert_elmo_jax.runs.with_head import check_unread, prepare_head, start_head
from bert_elmo_jax.train.checkpoint import load_params, saved_steps
from bert_elmo_jax.train.metrics import read_metrics

from .task_files import WRITERS, write_model, write_task

pytestmark = pytest.mark.usefixtures("one_device")


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


EPOCHS = {"classification": 25, "entities": 1, "squad": 1, "swag": 1}  # the first is to be learned


@pytest.mark.parametrize("task", [pytest.param(t, marks=[pytest.mark.long] * (t != "classification")) for t in EPOCHS])
def test_from_a_file_to_predictions(task, files, model, tmp_path, capsys):
    steps = 4 * EPOCHS[task]
    config = config_of(files[task], epochs=float(EPOCHS[task]), eval_every=steps, dropout=0.0)
    assert finetune(config, tmp_path / "run", init=str(model)) == 0
    messages = capsys.readouterr().err
    run_line = rf"^{tmp_path / 'run'}: {task}, {steps} steps of 16 rows \(\d+ are an epoch\), on \d+ × cpu$"
    assert re.search(run_line, messages, re.M) and re.search(r"^padding: \d+\.\d% of positions", messages, re.M)
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    scores = {line["step"]: line[f"dev/{result['score']}"] for line in read_metrics(tmp_path / "run")
              if f"dev/{result['score']}" in line}  # fmt: skip
    assert list(scores) == [steps] and result["dev"][result["score"]] == pytest.approx(scores[steps], abs=1e-3)
    tuned = load(tmp_path / "run")
    assert isinstance(tuned, TaskModel) and tuned.task.max_length == 32
    dev = read_examples(files[task]["dev"], tuned.task)
    predictions = tuned.predict_examples(dev, batch_size=7)
    assert len(predictions) == len(dev) == 32
    assert all(len(str(prediction)) < 300 for prediction in predictions)
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Attention over" in report
    assert "http" not in report.replace("http-equiv", "")
    if task == "classification":  # the words determine the labels, so a model that learns finds them
        learned = tuned.predict(["the film was bad", "좋다 영화"] * 20)
        assert [p.label for p in learned] == ["노잼", "재미"] * 20
        assert sum(learned[0].probabilities.values()) == pytest.approx(1.0)


def moved_parts(model, run):
    """Return for each part of the encoder whether a parameter differs from the model's."""
    before, after = load_params(model)[1]["encoder"], load_params(run)[1]["encoder"]
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), {name: before[name] for name in after}, after)
    return [any(jax.tree.leaves(part)) for part in moved.values()]


@pytest.mark.long
def test_a_frozen_encoder_and_patience_that_ends_a_run(files, model, tmp_path):
    """Nothing gets better; the best on dev is kept_runs."""
    config = config_of(files["sst2"], epochs=40.0, patience=2, dropout=0.0, transfer="frozen")
    config.optimizer.learning_rate = 1e-7
    run = tmp_path / "run"
    assert finetune(config, run, init=str(model)) == 0
    lines = read_metrics(run)
    scores = [line["dev/accuracy"] for line in lines if "dev/accuracy" in line]
    assert len(lines) < 40 * 4 and np.isfinite(lines[-1]["loss"])
    assert max(scores) not in scores[-2:] or scores.index(max(scores)) == len(scores) - 3
    assert best_step(run) in saved_steps(run)
    assert not any(moved_parts(model, run))
    tuned = load(run)
    assert set(tuned.params) == {"encoder", "classify"} and tuned.predict(["좋다 영화"])[0].label in ("0", "1")
    metrics = (run / "metrics.jsonl").read_bytes()
    assert finetune(config, run, init=str(model)) == 0  # done is done
    assert (run / "metrics.jsonl").read_bytes() == metrics


@pytest.mark.long  # tests/runs/test_transfer.py has the ways of transfer
def test_an_optimiser_with_a_state_for_each_part_is_read_back(files, model, tmp_path, capsys):
    fields = {"transfer": "top_down", "epochs": 3.0, "layer_decay": 0.5, "class_weights": "balanced"}
    config = config_of(files["sst2"], dropout=0.0, **fields)
    for _ in range(2):
        assert finetune(config, tmp_path / "run", init=str(model)) == 0
    assert "resuming from step 12" in capsys.readouterr().err
    assert all(moved_parts(model, tmp_path / "run"))


@pytest.mark.long
def test_a_grid_of_features_keeps_the_best(files, model, tmp_path, capsys):
    features = {"features.layers": "all", "features.combine": "mix", "features.lstm_layers": 1, "features.lstm_size": 4}
    config = config_of(files["sst2"], epochs=1.0, dropout=0.0, transfer="frozen", **features)
    assert finetune(config, tmp_path, init=str(model), seeds=["0", "1"]) == 0
    runs = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))
    scores = [run["dev"]["accuracy"] for run in runs["runs"]]
    tuned = load(tmp_path)
    assert set(tuned.params) == {"encoder", "classify", "reader"}
    dev = read_examples(files["sst2"]["dev"], tuned.task)
    right = [p.label == e.label for p, e in zip(tuned.predict_examples(dev), dev)]
    assert np.mean(right) == pytest.approx(max(scores))
    kept_runs = [folder for folder in (tmp_path / "runs").iterdir() if (folder / "checkpoints").is_dir()]
    assert [folder.name for folder in kept_runs] == [runs["best"]]
    assert not any(moved_parts(model, kept_runs[0]))
    messages = capsys.readouterr().err
    assert "(2 seeds)" in messages and "run 2 of 2: seed=1" in messages
    assert finetune(config, tmp_path, init=str(model), seeds=["0", "1"]) == 0
    assert "run 1 of" not in capsys.readouterr().err


def test_a_setting_of_a_grid_has_its_own_model_and_examples(files, model, tmp_path):
    config = config_of(files["sst2"], dropout=0.0)
    kind = find_kind(config)
    run = Run(tmp_path, {"init": str(model), "tokenizer": None})
    task = TaskJob(read_data(config), kind, kind.start(config, str(model), None), "jit")
    setting = {"dropout": 0.25, "share": 0.5}
    changed = apply_to_task(task, setting, run, apply_setting(config, setting, tmp_path))
    assert (task.start.model.dropout, changed.start.model.dropout) == (0.0, 0.25)
    assert len(changed.data.train) == len(task.data.train) / 2
    assert apply_to_task(task, {"epochs": 2.0}, run, config) is task


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features.lstm_layers": 2}, "features.lstm_layers has no effect without config.features.layers"),
        ({"features.combine": "mix"}, "features.combine has no effect without config.features.layers"),
        ({"lora.rank": 2}, "lora.rank has no effect without config.transfer=lora: add it, or leave config.lora.rank"),
    ],
)
def test_fields_that_no_run_reads_are_refused(changes, message, files, model, tmp_path):
    with pytest.raises(ValueError, match=message):
        finetune(config_of(files["sst2"], **changes), tmp_path / "run", init=str(model))
    assert not (tmp_path / "run").exists()
    [(field, value)] = changes.items()
    with pytest.raises(ValueError, match=message):
        check_unread(config_of({}), [{field: value}])
    reader = {"transfer": "lora"} if field.startswith("lora") else {"features.layers": "-1"}
    check_unread(config_of({}, **changes), [{"seed": 0}, reader])  # the setting of a grid reads it
    check_unread(config_of({}, **reader), [{field: value}])


def test_a_refused_command_is_corrected_in_the_same_folder(files, model, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(ValueError, match="batch_size=6 cannot be shared by 1 devices in 4 parts"):
        finetune(config_of(files["sst2"], batch_size=6, accumulate=4), run, init=str(model))
    assert not (run / "examples.json").exists()
    train.refuse_other_files(run)


@pytest.fixture
def quick_runs(model, monkeypatch):
    """Replace the training of a setting: its score is its seed; seed 1 diverges, and seed 2 is refused."""
    wrong = {1: train.Diverged("no finite loss"), 2: ValueError("seed=2: use another")}

    def run_task(run, config, task):
        if config.seed in wrong:
            raise wrong[config.seed]
        shutil.copytree(model, run.workdir, dirs_exist_ok=True)
        (run.workdir / "report.html").write_text("", encoding="utf-8")
        result = {"score": "accuracy", "dev": {"accuracy": config.seed / 10}}
        (run.workdir / "result.json").write_text(json.dumps(result), encoding="utf-8")

    monkeypatch.setattr(finetuning, "run_task", run_task)
    return wrong


def test_a_setting_that_fails_does_not_stop_the_others(files, model, tmp_path, capsys, quick_runs):
    config = config_of(files["sst2"])
    run = functools.partial(finetune, config, tmp_path, init=str(model), seeds=["1", "0", "2", "3"])
    with pytest.raises(train.Diverged, match=r"2 of 4 runs failed, the first of them seed=1: no finite loss"):
        run()
    grid = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))
    assert grid["best"] == "seed=3" and load(tmp_path)
    assert [one.get("failed") for one in grid["runs"]] == ["no finite loss", None, "seed=2: use another", None]
    messages = capsys.readouterr().err
    assert "run 3 of 4 failed: seed=2: use another" in messages and "(2 seeds)" in messages
    quick_runs.clear()  # a later start succeeds, and the best is another
    shutil.rmtree(tmp_path / "runs" / "seed=3")
    quick_runs[3] = ValueError("no longer")
    with pytest.raises(ValueError, match="1 of 4 runs failed"):
        run()
    assert json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))["best"] == "seed=2"
    assert (tmp_path / "model.json").is_file() and len(saved_steps(tmp_path)) == 1


def test_a_grid_that_fails_altogether_shows_the_error(files, model, tmp_path, quick_runs):
    with pytest.raises(ValueError, match=r"1 of 1 runs failed, the first of them seed=2: seed=2: use another"):
        finetune(config_of(files["sst2"]), tmp_path, init=str(model), seeds=["2"])
    assert not (tmp_path / "grid.json").exists() and not is_run_directory(tmp_path)


def test_paths_as_values_of_a_grid_are_one_folder_each(files, model, tmp_path, capsys, quick_runs):
    vocabulary = f"{model.parent}/../{model.parent.name}/{model.name}"
    config = config_of(files["sst2"])
    presets = [str(model), vocabulary]
    assert finetune(config, tmp_path, tokenizer=str(model), grid=f"preset={','.join(presets)}") == 0
    folders = sorted(folder.name for folder in (tmp_path / "runs").iterdir())
    assert folders == sorted("preset=" + preset.replace("/", "%2F") for preset in presets)
    best = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))["best"]
    assert best in folders
    assert f"run 1 of 2: preset={presets[0]}".replace("/", "%2F") in capsys.readouterr().err


def test_the_folder_of_an_earlier_version_stays_if_it_is_inside(tmp_path):
    nested = tmp_path / "runs" / "preset=a" / "b"
    nested.mkdir(parents=True)
    assert name_folder(tmp_path / "runs", {"preset": "a/b"}) == nested
    (tmp_path / "runs" / "preset=..").mkdir()
    outside = name_folder(tmp_path / "runs", {"preset": "../../.."})
    assert outside == tmp_path / "runs" / "preset=..%2F..%2F.."


@pytest.mark.parametrize("field", ["share", "max_length", "encoder"])
def test_settings_with_other_sentences_have_a_cache_each(field, tmp_path):
    config = importlib.import_module("experiments.configs.bcn").get_config()
    config.encoder = "elmo"
    value = {"share": 0.5, "max_length": 8, "encoder": "bert"}[field]
    assert apply_setting(config, {"seed": 1}, tmp_path).cache == str(tmp_path / "vectors")
    assert apply_setting(config, {field: value}, tmp_path).cache == ""


def test_the_runs_of_a_grid_are_scored_on_the_same_examples(files, tmp_path):
    config = config_of(files["sst2"])
    data = read_data(config)
    other = data._replace(dev=data.dev[1:])
    for began, read in ((True, other), (False, data), (True, data)):  # at first a run of an earlier version
        check_examples(tmp_path, read, began=began)
    with pytest.raises(ValueError, match=rf"the examples of --dev have changed since {re.escape(str(tmp_path))} began"):
        check_examples(tmp_path, other, began=True)
    done = tmp_path / "grid" / "runs" / "seed=0"
    done.mkdir(parents=True)
    (done / "result.json").write_text('{"score": "accuracy", "dev": {"accuracy": 0.5}}')
    config.test = config.dev
    with pytest.raises(ValueError, match=r"seed=0 ended without it, and only the best model is kept"):
        run_grid(Run(tmp_path / "grid", {}), config, TaskJob(data, find_kind(config), None, "jit"), [{"seed": 0}])


def test_a_grid_with_an_undefined_score_keeps_its_model(model, tmp_path, capsys):
    folders = [tmp_path / "runs" / f"seed={seed}" for seed in range(3)]
    for folder, pearson in zip(folders, (float("nan"), 0.5, 0.25)):
        shutil.copytree(model, folder)
        (folder / "report.html").write_text("", encoding="utf-8")
        result = {"score": "pearson", "dev": {"pearson": pearson}, "test": {"pearson": 0.5}}
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    finish_grid(Run(tmp_path, {}), [{"seed": seed} for seed in range(3)], folders)
    assert is_run_directory(tmp_path)
    messages = capsys.readouterr().err
    assert "all seeds: dev pearson – (undefined for 1 of 3 seeds)\n" in messages
    assert "all seeds: test pearson 0.5000 ± 0.0000 (3 seeds)\n" in messages and "model of seed=1" in messages


def test_when_each_part_joins():
    layers = {f"layer_{n}": {"kernel": 0} for n in range(3)}
    params = {"encoder": {"embeddings": {"word": 0}, **layers, "pooler": {"bias": 0}}, "classify": {"bias": 0}}

    def starts(new_pooler=False, **changes):
        fresh = ("encoder/pooler/.*",) if new_pooler else ()
        spans = plan_unfreezing(config_of({}, **changes), get_family("bert").depth_of, params, 10, fresh)
        encoder = {name: next(iter(part.values())) for name, part in spans["encoder"].items()}
        parts = (spans["classify"]["bias"], *(encoder[name] for name in ("pooler", "layer_2", "layer_0", "embeddings")))
        assert all(part.steps[0][1:] == (None,) for part in parts)
        return [part.steps[0][0] for part in parts]

    assert starts(transfer="head_first") == [0, 10, 10, 10, 10]
    assert starts(transfer="head_first", head_epochs=0.5) == [0, 5, 5, 5, 5]
    assert starts(transfer="top_down") == [0, 10, 10, 30, 40]
    assert starts(transfer="gradual") == starts(transfer="top_down")
    assert starts(transfer="top_down", new_pooler=True) == [0, 0, 10, 30, 40]
    with pytest.raises(ValueError, match=r"config.head_epochs=0\.0 is less than a step"):
        starts(transfer="head_first", head_epochs=0.0)


def test_weights_of_labels(files):
    data = read_data(config_of(files["classification"]))
    count = [sum(example.label == label for example in data.train) for label in data.task.labels]
    balanced = class_weights("balanced", data.task, data.train)
    assert [weight * n for weight, n in zip(balanced, count)] == pytest.approx([32.0, 32.0])
    assert class_weights("재미=3,노잼=1.5", data.task, data.train) == [1.5, 3.0]
    assert class_weights("", data.task, data.train) is None
    for wrong in ("재미=3", "재미=3,노잼=0", "재미=3,노잼=a", "재미=3,재미=1", "재미=3,노잼=1,so=1"):
        with pytest.raises(ValueError, match="expected balanced, or a number above 0 for each of the 2 labels"):
            class_weights(wrong, data.task, data.train)


RECIPES = list(list_recipes("finetune")[0])
KINDS = {"nsmc": "sst2", "stsb": "regression", "pos": "ud_upos", "entities_features": "entities", "squad2": "squad"}
KINDS |= dict.fromkeys(("base", "small", "quickstart"), "classification")  # of any task


LONG = [pytest.param(name, marks=pytest.mark.long) for name in RECIPES if name not in ("base", "squad")]


@pytest.mark.parametrize("name", ["base", "squad", *LONG])
def test_every_recipe_makes_a_step(name, files, model):
    """The recipe with other data is traced, but not computed."""
    config, docstring = read_config(f"finetune:{name}")
    for part in ("xpected score:", "Cost:", "Command:", "finetune" if name == "base" else f"--config=finetune:{name}"):
        assert part in docstring
    theirs = config.task
    config.update(files[KINDS.get(name, name)])
    if config.features.layers:
        config.features.update({"layers": "-2,-1", "lstm_size": 8})  # the model has two, and is small
    data, start = read_data(config), start_head(config, str(model), None)
    assert not theirs or task_named(theirs).kind == data.task.kind
    ready = prepare_head(config, data, start)
    step = train.make_step(ready.loss, ready.method, ready.coefficients)
    batch = collate(ready.rows[:4], 4, ready.task.max_length, 0)
    state, metrics = jax.eval_shape(step, train.new_state(ready.params, ready.method, jax.random.key(0)), batch)
    assert jax.tree.structure(state.params) == jax.tree.structure(ready.params)
    assert metrics["loss"].shape == ()
