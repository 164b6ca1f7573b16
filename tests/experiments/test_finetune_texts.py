"""Classifiers of texts and of pairs from files to predictions: with an encoder or without, refused."""

import importlib
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.predictions import Label
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.train.checkpoint import load_params

from .task_files import GOOD, OTHER, write_model, write_task

pytestmark = pytest.mark.usefixtures("one_device")
ROOT = Path(__file__).parents[2]
ELMO = str(ROOT / "tests" / "goldens" / "elmo_tiny")
SMALL = {"lstm_size": 4, "epochs": 1.0, "batch_size": 16, "unknown": "unk", "word_size": 6}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    counts = {"sst2": 32, "classification": 96, "qnli": 32, "regression": 32}
    return {task: write_task(folder / task, task, count=count) for task, count in counts.items()}


def config_of(name, fields, **changes):
    config = importlib.import_module(f"experiments.configs.{name}").get_config()
    config.update({**SMALL, **({"feed_size": 4} if name == "bcn" else {}), **fields})
    config.update_from_flattened_dict(changes)
    return config


@pytest.mark.long
def test_a_classifier_learns_on_frozen_layers_and_predicts(files, tmp_path, capsys):
    config = config_of(
        "bcn", {**files["classification"], "lstm_size": 8, "feed_size": 8}, encoder=ELMO, max_length=6, epochs=6.0,
        eval_every=36, dropout=0.0, word_dropout=0.0, mix_dropout=0.0,
    )  # fmt: skip
    config.optimizer.learning_rate = 0.02
    assert finetune(config, tmp_path / "run") == 0
    messages = capsys.readouterr().err
    assert "of 96 texts have more than 6 words: the first 6 are read (config.max_length)" in messages
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["dev"]["accuracy"] > 0.9
    assert (tmp_path / "run" / "vectors").is_dir()
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Confusion" in report
    assert "Weights of the encoder" in report

    model = load(tmp_path / "run")
    [good, long] = model.predict([f"{GOOD[0]} film, really", "영화 " * 700])
    assert isinstance(good, Label)
    assert good.label == "재미"
    assert set(long.probabilities) == {"노잼", "재미"}
    out = tmp_path / "out.jsonl"
    predict_file(str(tmp_path / "run"), config.dev, str(out))
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    right = [example.label for example in read_examples(config.dev, model.task)]
    assert np.mean([line["label"] == label for line, label in zip(lines, right, strict=True)]) > 0.9


@pytest.mark.long
def test_pairs_from_files_to_predictions(files, tmp_path):
    """ESIM, an ELMo at input and output; the vectors of both texts are kept."""
    config = config_of("esim", files["qnli"], encoder=ELMO)
    assert finetune(config, tmp_path / "run") == 0
    model = load(tmp_path / "run")
    assert sorted(model.params["mix"]) == ["input", "output"]
    dev = read_examples(config.dev, model.task)
    together = model.predict_examples(dev, batch_size=16)
    for one, other in zip(together, model.predict([(example.text, example.pair) for example in dev[:2]])):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    lines = tmp_path / "pairs.txt"
    lines.write_text("강가의 film\tso good\nthe film\t영화\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    predict_file(str(tmp_path / "run"), str(lines), str(out))
    assert [set(json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines()] == [
        {"text", "pair", "label", "probability", "probabilities"}
    ] * 2


@pytest.mark.long
def test_a_bert_that_is_trained_along_with_pairs(files, tmp_path):
    bert = write_model(tmp_path / "bert")
    config = config_of("bcn", files["qnli"], encoder=str(bert), tune_encoder=True, places="output", layer_decay=0.5)
    assert finetune(config, tmp_path / "run") == 0
    tuned = load(tmp_path / "run")
    assert tuned.config.pairs
    before, after = load_params(bert)[1]["encoder"], load_params(tmp_path / "run")[1]["encoder"]
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), {n: before[n] for n in after}, after)
    assert all(jax.tree.leaves(moved["layer_0"]["feed_forward"]))
    assert not (tmp_path / "run" / "vectors").exists()
    [prediction] = tuned.predict([("the film", "처음 보는 말 " * 3)])
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.long
def test_texts_without_words_and_no_encoder(tmp_path):
    """As in NSMC, one row in a thousand may be empty, and is kept."""
    fields = {"task": "nsmc"}
    for part in ("train", "dev"):
        rows = [f"{n}\t{OTHER[n % len(OTHER)]} 영화\t{n % 2}" for n in range(1000)]
        rows[7] = "7\t \t1"
        fields[part] = str(tmp_path / f"{part}.txt")
        Path(fields[part]).write_text("\n".join(["id\tdocument\tlabel", *rows]) + "\n", encoding="utf-8")
    config = config_of("bcn", fields, batch_size=500)
    assert finetune(config, tmp_path / "run") == 0
    model = load(tmp_path / "run")
    assert model.encoder is None
    predictions = model.predict_examples(read_examples(config.dev, model.task)[:9])
    assert all(sum(label.probabilities.values()) == pytest.approx(1, abs=1e-5) for label in predictions)


REFUSED = [
    ("esim", "sst2", {}, "--task=sst2 has single texts: name the column of the second text with --pair=…"),
    ("bcn", "regression", {}, "is for classification, and --task=regression is regression: choose another config"),
    ("bcn", "sst2", {"max_length": 0}, "config.max_length=0: expected 1 or more words"),
    ("bcn", "sst2", {"places": "between"}, "places='between': use input, output"),
    ("bcn", "sst2", {"network": "poet"}, "config.network='poet' is not known; it is one of tagger, bcn, esim"),
    ("esim", "qnli", {"tune_encoder": True}, "config.tune_encoder needs an encoder: give --config.encoder"),
    ("esim", "qnli", {"dropout": 1.0}, "config.dropout=1.0: expected a number from 0 to below 1"),
]


@pytest.mark.parametrize(("name", "task", "changes", "message"), REFUSED)
def test_wrong_settings_are_refused(name, task, changes, message, files, tmp_path):
    with pytest.raises(ValueError, match=message):
        finetune(config_of(name, files[task], **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()
