"""Examples of `bert_elmo_jax.data.tasks.task`."""

import re

import pytest

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.task import check_labels, task_from_json, task_named, task_to_json, with_labels


def test_example_of_with_labels():
    train = [TextExample(text, None, label, None, "train.tsv", 2) for text, label in (("좋다", "1"), ("싫다", "0"))]
    assert with_labels(task_named("sst2"), train).labels == ("0", "1")


def test_example_of_check_labels():
    check_labels(with_labels(task_named("swag"), []), [])


def test_example_of_task_to_json():
    assert task_from_json(task_to_json(task_named("korquad")), "model.json") == task_named("korquad")


def test_example_of_task_from_json():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "model.json: task.kind is 'poetry'; expected one of classification, regression, tags, choice, questions"
        ),
    ):
        task_from_json({"name": "sst2", "kind": "poetry"}, "model.json")
