"""Tasks: as JSON, with labels from the training data, and refusals."""

import dataclasses
import json

import pytest

from bert_elmo_jax.data.tasks import Answer, Question, TextExample
from bert_elmo_jax.data.tasks.rows import check_length
from bert_elmo_jax.data.tasks.task import TASKS, check_labels, task_from_json, task_named, task_to_json, with_labels


def test_tasks_survive_json():
    for name in TASKS:
        task = dataclasses.replace(task_named(name), labels=("가", "나"))
        assert task_from_json(json.loads(json.dumps(task_to_json(task))), "model.json") == task


def test_invalid_tasks_are_refused():
    kinds = "expected one of classification, regression, tags, choice, questions"
    for call, message in (
        (lambda: task_named("poetry"), "there is no task 'poetry'; there are classification"),
        (
            lambda: task_named("tags", label="tag", file="a.conll"),
            r"label='tag' for a\.conll: its columns have no names; give a number",
        ),
        (
            lambda: task_named("tags", label="tag", file="a.csv"),
            "no names; a csv is not read: write lines of a word, a tab",
        ),
        (lambda: task_named("entities", pair="b"), "pair='b': 'entities' has one column of words; leave it out"),
        (lambda: check_length(task_named("sst2", max_length=4), 512), "max_length=4: use 8 to 512"),
        (
            lambda: check_length(task_named("sst2", max_length=600), 512),
            "max_length=600: use 8 to 512, the positions of this model",
        ),
        (
            lambda: task_from_json({"name": "a", "kind": "choice", "colour": 1}, "model.json"),
            "task is invalid in this version",
        ),
        (
            lambda: task_from_json({"name": "sst2", "kind": "poetry"}, "model.json"),
            rf"model\.json: task\.kind is 'poetry'; {kinds}",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_labels_come_from_the_training_data():
    examples = [TextExample("a", None, label, None, "a.csv", 2) for label in ("10", "9", "10")]
    assert with_labels(task_named("classification"), examples).labels == ("9", "10")
    questions = [Question("q", "a", "b", (), "a.json", 1), Question("r", "a", "b", (Answer("b", 0),), "a.json", 1)]
    assert with_labels(task_named("squad"), questions).unanswerable
    assert not with_labels(task_named("squad"), questions[1:]).unanswerable
    swag = with_labels(task_named("swag"), [])
    assert swag.labels == ()
    check_labels(swag, [])
