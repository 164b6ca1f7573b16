"""Heads of released models are trained on: their labels in any order, and readers and choices with labels."""

import importlib
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.inference.task_model import make_head
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_head import init_params, prepare_head, start_head

pytestmark = pytest.mark.usefixtures("one_device")
ROWS = "a,b,label\nthe river rose,it fell,{0}\nthe bank,a boat,{1}\nnobody came,she did,{2}\n"
SENTENCES = ["the O\nRiver B-LOC\nBank I-LOC\n", "Angela B-PER\nMerkel I-PER\nof O\nSeoul B-ORG\nStation I-ORG\n"]


def prepare(folder, file, **fields):
    """Return the config, the data and the prepared model of a released model and a file."""
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update({"train": str(file), "dev": str(file), "epochs": 1.0, "max_length": 32, "dropout": 0.0, **fields})
    data = read_data(config)
    return data, prepare_head(config, data, start_head(config, str(folder), None))


def check_kept(folder, data, ready, inputs, workdir):
    """Compare head, labels and predictions with those of the released model."""
    released = load(folder)
    assert ready.task.labels == released.labels != data.task.labels
    assert sorted(ready.task.labels) == sorted(data.task.labels)
    [name] = ready.params.keys() - {"encoder"}
    jax.tree.map(np.testing.assert_array_equal, dict(ready.params[name]), dict(released.params[name]))
    _, predict = ready.begin(workdir)
    ours = predict(ready.params, lambda batch: jax.tree.map(jnp.asarray, dict(batch)))
    return list(zip(ours, released.predict(inputs), strict=True))


def test_a_classifier_keeps_its_head_and_the_order_of_its_labels(goldens, tmp_path):
    folder, file = goldens / "released_heads" / "roberta_nli3", tmp_path / "train.csv"
    file.write_text(ROWS.format("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), encoding="utf-8")
    data, ready = prepare(folder, file, task="classification", text="a", pair="b")
    pairs = [(example.text, example.pair) for example in data.dev]
    for ours, theirs in check_kept(folder, data, ready, pairs, tmp_path / "run"):
        assert ours.label == theirs.label
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-5)
    described = json.loads((tmp_path / "run" / "model.json").read_text(encoding="utf-8"))
    assert described["task"]["labels"] == described["labels"] == ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"]
    described["task"]["labels"] = sorted(described["labels"])
    (tmp_path / "run" / "model.json").write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(ValueError, match="began with the labels CONTRADICTION, ENTAILMENT, NEUTRAL, and they are"):
        ready.describe(tmp_path / "run")


def test_a_tagger_keeps_its_head_and_the_order_of_its_tags(goldens, tmp_path):
    folder, file = goldens / "released_heads" / "bert_ner", tmp_path / "train.conll"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    data, ready = prepare(folder, file, task="entities")
    words = [list(example.words) for example in data.dev]
    for ours, theirs in check_kept(folder, data, ready, words, tmp_path / "run"):
        assert ours.tags == theirs.tags


def test_other_labels_begin_with_a_new_head(goldens, tmp_path, capsys):
    folder, file = goldens / "released_heads" / "roberta_nli3", tmp_path / "train.csv"
    file.write_text(ROWS.format("yes", "no", "perhaps"), encoding="utf-8")
    _, ready = prepare(folder, file, task="classification", text="a", pair="b")
    assert ready.task.labels == ("no", "perhaps", "yes")
    assert not np.array_equal(ready.params["classify"]["kernel"], load(folder).params["classify"]["kernel"])
    assert "the weights have a head classify for another task or other labels" in capsys.readouterr().err


def test_a_reader_whose_config_names_labels_keeps_its_head(goldens, tmp_path):
    folder = shutil.copytree(goldens / "released_heads" / "distilbert_qa", tmp_path / "reader")
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    content["id2label"] = {"0": "LABEL_0", "1": "LABEL_1"}
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    config = importlib.import_module("experiments.configs.finetune").get_config()
    start, task = start_head(config, str(folder), None), task_named("squad", max_length=32)
    params, _ = init_params(start, task, make_head(task, None, start.model), seed=0)
    np.testing.assert_array_equal(params["span"]["kernel"], load(folder).params["span"]["kernel"])
