"""Released classifiers, taggers and readers answer as transformers' pipelines do; frozen answers, and wrong files."""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.inference.task_model import TaskModel

HERE = Path(__file__).parents[1] / "goldens" / "released_heads"
SHARED = Path(__file__).parents[3] / "shared" / "goldens" / "released_heads"
FOLDERS = sorted(folder.name for folder in HERE.iterdir())
ALL = sorted(folder.name for folder in SHARED.iterdir()) if SHARED.is_dir() else FOLDERS
LIMIT = 1e-5


class Released(NamedTuple):
    """A released model, its inputs as `predict` takes them, and the frozen answers."""

    model: TaskModel
    inputs: list[Any]
    frozen: dict[str, Any]


@functools.cache
def released(name: str) -> Released:
    folder = SHARED / name if name not in FOLDERS else HERE / name
    frozen = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    keys = ("question", "context") if frozen["pipeline"] == "question-answering" else ("text", "text_pair")
    inputs = [tuple(map(text.get, keys)) if isinstance(text, dict) else text for text in frozen["inputs"]]
    return Released(load(folder), inputs, frozen)


def of_pipeline(names: list[str], pipeline: str) -> list[Any]:
    """Return the folders of a pipeline; those that are not in this repository are tested at night."""
    ends = {"text": ("sentiment2", "nli3", "regression", "multilabel"), "tag": ("ner",), "read": ("qa",)}[pipeline]
    chosen = [name for name in names if name.endswith(ends)]
    return [name if name in FOLDERS else pytest.param(name, marks=pytest.mark.long) for name in chosen]


@pytest.mark.parametrize("name", of_pipeline(ALL, "text"))
def test_labels_and_probabilities_of_texts(name):
    model, inputs, frozen = released(name)
    for prediction, scores in zip(model.predict(inputs), frozen["answers"]["top_k=None"], strict=True):
        theirs = {entry["label"]: entry["score"] for entry in scores}
        if name.endswith("regression"):
            assert abs(prediction.value - scores[0]["score"]) < LIMIT
            continue
        assert prediction.probabilities == pytest.approx(theirs, abs=LIMIT)
        if name.endswith("multilabel"):
            assert list(prediction.labels) == [entry["label"] for entry in scores if entry["score"] >= 0.5]
        else:
            assert prediction.label == scores[0]["label"]


@pytest.mark.parametrize("name", of_pipeline(ALL, "text"))
def test_logits_of_texts(name):
    model, inputs, frozen = released(name)
    encodings = [model.tokenizer.encode(*(text if isinstance(text, tuple) else (text,))) for text in inputs]
    assert [encoding.ids.tolist() for encoding in encodings] == frozen["ids"]
    batch = model.tokenizer.batch(inputs)
    output = model.forward(batch["tokens"], batch["types"], batch["segments"])
    logits = np.array(frozen["logits"])
    assert np.abs(np.asarray(output.logits) - logits).max() < LIMIT * max(1, np.abs(logits).max())
    assert output.head == "classify" and len(output.layers) == model.num_layers + 1 and output.mlm_logits is None


def test_the_encoder_of_a_classifier_stays_available():
    model = released("roberta_nli3").model
    assert model.labels == ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    assert model.encode(["The river."]).last.shape[2] == model.sentences(["The river."]).shape[1] == model.width
