"""Fine-tuning with adapters: small checkpoints, exact resume, merged when loaded, and the same through peft's files."""

import json
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.inference.adapter_files import read_adapted
from bert_elmo_jax.inference.convert import average_checkpoints, convert
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.with_head import find_obstacle
from bert_elmo_jax.train.checkpoint import load_params, save_params
from bert_elmo_jax.train.metrics import read_metrics
from bert_elmo_jax.weights.parameter_tree import flatten

from ..conftest import GOLDENS
from ..experiments.task_files import write_model, write_task
from .test_with_documents import stop_after

TEXTS = ["좋다 영화", "the bad film"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_task(tmp_path_factory.mktemp("files"), "sst2", count=24)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("model") / "bert"))


def config_of(files, **changes):
    config, _ = read_config("experiments/configs/finetune.py")
    config.update({**files, "batch_size": 8, "epochs": 2.0, "max_length": 32, "log_every": 1, "transfer": "lora"})
    config.lora.update({"rank": 2, "targets": "query,value,feed_forward/up"})
    config.optimizer.update({"name": "adamw", "learning_rate": 2e-2})
    config.update_from_flattened_dict(changes)
    return config


@pytest.fixture(scope="module")
def run(files, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "lora"
    assert finetune(config_of(files), folder, init=model) == 0
    return folder


def test_checkpoints_hold_what_is_trained_and_load_merges(run, model):
    step, trained = load_params(run)
    assert set(trained) == {"adapters", "classify"}
    tuned, base = load(run), load(model)
    assert set(tuned.params) == {"encoder", "classify"}
    changed = {
        name
        for name, value in flatten(tuned.params["encoder"]).items()
        if (np.asarray(value) != flatten(base.params["encoder"])[name]).any()
    }
    assert changed == {f"layer_0/{name}/kernel" for name in ("attention/query", "attention/value", "feed_forward/up")}
    assert len(tuned.predict(TEXTS)) == 2
    assert load(run / "base").encode(TEXTS).last.shape[0] == 2
    assert step == 6
    losses = [line["loss"] for line in read_metrics(run) if "loss" in line]
    assert losses[-1] < losses[0]


def test_the_mean_of_checkpoints_is_that_of_the_models(run, model, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    step, trained = load_params(run)
    halved = jax.tree.map(lambda leaf: np.asarray(leaf) / 2, trained)
    save_params(tmp_path / "run", step + 1, halved)
    _, mean = average_checkpoints(tmp_path / "run", 2)
    fields = json.loads((run / "model.json").read_text())["lora"]
    models = [flatten(read_adapted(run, fields, params)) for params in (trained, halved)]
    for name, value in flatten(mean).items():
        np.testing.assert_allclose(value, (models[0][name] + models[1][name]) / 2, rtol=1e-6, atol=1e-7)


@pytest.mark.long
def test_interrupted_it_ends_as_if_left_alone(run, files, model, tmp_path, monkeypatch):
    config = config_of(files, checkpoint_every=1)
    uninterrupted_run = tmp_path / "whole"
    assert finetune(config, uninterrupted_run, init=model) == 0
    monkeypatch.setattr(train.Checkpoints, "save", stop_after(3))
    with pytest.raises(KeyboardInterrupt):
        finetune(config, tmp_path / "killed", init=model)
    monkeypatch.undo()
    assert finetune(config, tmp_path / "killed", init=model) == 0
    ours, theirs = (flatten(load_params(folder)[1]) for folder in (tmp_path / "killed", uninterrupted_run))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, name)
    assert read_metrics(tmp_path / "killed") == read_metrics(uninterrupted_run)


def test_resumed_with_another_encoder_it_is_refused(run, files, tmp_path):
    other = write_model(tmp_path / "other" / "bert", num_layers=1)
    params = load(other).params
    shutil.rmtree(other)
    encoder = load(run / "base")
    changed = jax.tree.map(lambda x: np.asarray(x) + 1, params)
    write_run_directory(other, encoder.config, changed, encoder.tokenizer, run={})
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "run.json").write_text(
        json.dumps({**json.loads((copy / "run.json").read_text(encoding="utf-8")), "init": str(other)}),
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="was started with another encoder"):
        finetune(config_of(files), copy, init=str(other))


def test_adapters_of_a_run_are_added_to_its_model(run, model, tmp_path):
    size = sum(file.stat().st_size for file in (run / "adapter").iterdir())
    assert size < 20_000
    fields = json.loads((run / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert (fields["r"], fields["lora_alpha"], fields["task_type"]) == (2, 16.0, "SEQ_CLS")
    assert fields["modules_to_save"] == ["classifier"]
    merged = load(model, adapter=run / "adapter")
    for name, value in flatten(load(run).params).items():
        np.testing.assert_allclose(flatten(merged.params)[name], value, atol=1e-6, err_msg=name)
    ways = {"run": str(run), "adapter": model}
    for name, source in ways.items():
        options = {"adapter": str(run / "adapter")} if name == "adapter" else {}
        convert(source, tmp_path / name, to_format="huggingface", classifier=None, **options)
    ours, theirs = (flatten(load(tmp_path / name).params) for name in ways)
    for name, value in ours.items():
        np.testing.assert_allclose(theirs[name], value, atol=1e-6, err_msg=name)


@pytest.mark.long
def test_parts_in_full_are_trained_and_saved_with_the_adapters(files, model, tmp_path):
    config = config_of(files, **{"lora.in_full": "pooler", "epochs": 1.0})
    assert finetune(config, tmp_path / "run", init=model) == 0
    trained = load_params(tmp_path / "run")[1]
    assert set(trained["encoder"]) == {"pooler"}
    before = load(model).params["encoder"]["pooler"]["kernel"]
    assert (np.asarray(trained["encoder"]["pooler"]["kernel"]) != np.asarray(before)).any()
    fields = json.loads((tmp_path / "run" / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert fields["modules_to_save"] == ["classifier", "pooler.dense"]
    assert "pooler.dense" not in fields["target_modules"]
    merged = flatten(load(model, adapter=tmp_path / "run" / "adapter").params)
    for name, value in flatten(load(tmp_path / "run").params).items():
        np.testing.assert_allclose(merged[name], value, atol=1e-6, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("part", ["embeddings", "layer_0"])
def test_a_part_without_which_the_base_is_not_complete_is_trained_in_full(part, files, model, tmp_path):
    config = config_of(files, **{"lora.in_full": part, "epochs": 1.0})
    if part == "layer_0":
        config.lora.targets = "embeddings/word"  # the model has one layer
    for _ in range(2):  # the second time, the base is compared
        assert finetune(config, tmp_path / "run", init=model) == 0
    base, tuned = load(tmp_path / "run" / "base"), load(tmp_path / "run")
    original = load(model).params["encoder"]
    jax.tree.map(np.testing.assert_array_equal, base.params["encoder"][part], original[part])
    trained = load_params(tmp_path / "run")[1]["encoder"]
    assert set(trained) == {part}
    jax.tree.map(np.testing.assert_array_equal, tuned.params["encoder"][part], trained[part])
    moved = jax.tree.map(lambda a, b: bool((np.asarray(a) != np.asarray(b)).any()), original[part], trained[part])
    assert any(jax.tree.leaves(moved))


@pytest.mark.long
@pytest.mark.parametrize("case", ["features", "new pieces"])
def test_adapters_that_the_original_model_would_read_otherwise_are_not_written(case, files, model, tmp_path, capsys):
    init, changes, reason = {
        "features": (model, {"features.layers": "-1"}, "with config.features the head reads other vectors"),
        "new pieces": (str(GOLDENS / "gpt2_tiny"), {"lora.targets": "query"}, "the run added pieces to the tokenizer"),
    }[case]
    assert finetune(config_of(files, epochs=1.0, **changes), tmp_path / "run", init=init) == 0
    lines = capsys.readouterr().err.splitlines()
    [line] = [line for line in lines if "not written in the format of peft" in line]
    assert reason in line and "load the run itself" in line
    assert not (tmp_path / "run" / "adapter").exists()
    assert len(load(tmp_path / "run").predict(TEXTS)) == 2


def test_heads_that_read_what_released_heads_read_are_written():
    last, middle = Features((2,)), Features((1,))
    for head, new_pieces, obstacle in (
        (TaskHead("classification", 2), False, ""),
        (TaskHead("tags", 9, last), False, ""),
        (TaskHead("questions", features=last), False, ""),
        (TaskHead("tags", 9, last, pools_pieces=True), False, "config.features"),
        (TaskHead("tags", 9, middle), False, "config.features"),
        (TaskHead("tags", 9, Features((2,), "mix")), False, "config.features"),
        (TaskHead("classification", 2, last), False, "config.features"),
        (TaskHead("classification", 2, both_orders=True), True, "config.both_orders"),
        (TaskHead("classification", 2), True, "added pieces"),
    ):
        text = find_obstacle(head, 2, new_pieces)
        assert obstacle in text and bool(text) == bool(obstacle)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lora.in_full": "poler"}, "config.lora.in_full names 'poler', and .*did you mean pooler"),
        ({"lora.targets": "qurey"}, "config.lora: the target 'qurey' names no layer"),
        ({"lora.rank": 99}, "config.lora: rank=99: the kernel"),
        ({"layer_decay": 0.9}, "config.layer_decay=0.9 is for layers that are trained, and transfer=lora has none"),
        ({"lora.rank": 0}, "config.lora.rank=0: expected a whole number from 1"),
    ],
)
def test_contradictory_fields_are_refused(changes, message, files, model, tmp_path):
    with pytest.raises(ValueError, match=message):
        finetune(config_of(files, **changes), tmp_path / "run", init=model)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_network_has_no_adapters(files, tmp_path):
    config, _ = read_config("experiments/configs/bcn.py")
    config.update({**files, "task": "sst2", "transfer": "lora", "batch_size": 8})
    with pytest.raises(ValueError, match="transfer=lora is for a head on an encoder of pieces"):
        finetune(config, tmp_path / "run")
