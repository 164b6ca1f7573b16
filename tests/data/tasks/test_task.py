"""Tasks: as JSON, with labels from the training data, and refusals."""

import dataclasses
import json

import pytest

from bert_elmo_jax.data.tasks import Answer, Question, TextExample
from bert_elmo_jax.data.tasks.rows import check_length
from bert_elmo_jax.data.tasks.tagged import TagLayout
from bert_elmo_jax.data.tasks.task import (
    TASKS,
    check_labels,
    has_plain_lines,
    read_examples,
    task_from_json,
    task_named,
    task_to_json,
    with_labels,
)


def test_tasks_survive_json():
    for name in TASKS:
        task = dataclasses.replace(task_named(name), labels=("가", "나"))
        assert task_from_json(json.loads(json.dumps(task_to_json(task))), "model.json") == task


def test_the_ending_of_a_tagged_file_is_found_in_capitals_and_before_a_compressed_one():
    for file in ("train.conllu", "TRAIN.CONLLU", "train.conllu.gz"):
        assert task_named("tags", file=file).layout == TagLayout(1, 3, False, "conllu")
    assert task_named("tags", file="train.conll.gz").layout == TagLayout(0, -1, False)


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
            "a.csv:1: words and tags are not read from a csv; write lines of",
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


def test_words_are_read_in_the_format_of_the_file(tmp_path):
    files = {
        "words.tsv": "서울에\tB-LOC\n갔다\tO\n",
        "words.jsonl": json.dumps({"words": ["서울에", "갔다"], "tags": ["B-LOC", "O"]}),
        "words.conllu": "".join(
            f"{n}\t{word}{chr(9)}{chr(9).join('_' * 8)}\n" for n, word in ((1, "서울에"), (2, "갔다"))
        ),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for trained_on in files:
        task = task_named("entities", file=trained_on)
        for name in files:
            [sentence] = read_examples(tmp_path / name, task, labelled=False)
            assert sentence.words == ("서울에", "갔다"), (trained_on, name)


@pytest.mark.parametrize(
    ("task", "text", "plain"),
    [
        ("nsmc", "id\tdocument\tlabel\n1\t배가 온다\t1\n", False),
        ("nsmc", "배가 온다\n비가 온다\n", True),
        ("mrpc", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\ta\tb\n", False),
        ("conll", "-DOCSTART- -X- O\n\nthe DT O\nsea NN O\n\nit PRP O\n", False),
        ("conll", "the sea is calm\na ship sank\n", True),
        ("trec", "Who sank the ship ?\n", True),
    ],
)
def test_official_files_that_end_in_txt_are_tables(tmp_path, task, text, plain):
    file = tmp_path / "test.TXT"
    file.write_text(text, encoding="utf-8")
    assert has_plain_lines(str(file), task_named(task)) == plain
    assert not has_plain_lines(str(tmp_path / "test.tsv"), task_named(task))
