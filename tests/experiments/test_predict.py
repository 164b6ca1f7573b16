"""Predictions from files and standard input, as JSON lines; and their report."""

import json
import re

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.runs.task_report import figures_of, task_sections

from ..inference.test_task_model import write
from .programs import run_program
from .task_files import write_task

LABELS = {
    "sst2": ("0", "1"),
    "qnli": ("other", "same"),
    "ud_upos": ("ADJ", "NOUN"),
    "conll": ("B-LOC", "I-LOC", "O"),
    "stsb": (),
    "swag": (),
    "squad": (),
}
LINES = {
    "sst2": "좋다 the film\n영화 bad\n",
    "qnli": "where ?\t서울\nwho ?\tthe film\n",
    "ud_upos": "좋다 the film\n영화\n",
    "conll": "서울 역\n영화\n",
    "stsb": "a film\tthe film\n영화\t영화\n",
    "swag": "the film\tgood\tbad\twas\n영화\t좋다\t싫다\n",
    "squad": "where ?\t서울에 있다\nwho ?\tthe film\n",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    options = {"squad": {"unanswerable": True}}
    return {
        name: str(write(folder / name, name, labels=labels, **options.get(name, {}))) for name, labels in LABELS.items()
    }


def predict(stdin="", **given):
    status, out, said = run_program("predict", *(f"--{name}={value}" for name, value in given.items()), stdin=stdin)
    return status, [json.loads(line) for line in out.splitlines()], said


@pytest.mark.parametrize("name", LABELS)
def test_lines_of_standard_input(name, runs):
    status, lines, said = predict(LINES[name], model=runs[name])
    assert status == 0, said
    assert said.startswith(f"{runs[name]} ({name}): standard input -> standard output, on 8 × cpu\n")
    assert re.search(r"\d+ pieces in \d+ positions \(\d+\.\d% padding\)\n$", said)
    assert len(lines) == 2
    model = load(runs[name])
    first = lines[0]
    if model.task.kind == "classification":
        assert first["label"] in LABELS[name]
        assert sum(first["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
    elif model.task.kind == "tags":
        assert len(first["words"]) == len(first["tags"]) == len(first["probabilities"])
    elif name == "squad":
        assert "서울에 있다"[first["start"] : first["end"]] == first["answer"]
        assert "" in [span["answer"] for span in first["n_best"]]
    elif name == "swag":
        assert [len(line["probabilities"]) for line in lines] == [3, 2]
    else:
        assert isinstance(first["value"], float)


@pytest.mark.parametrize("name", ["qnli", "ud_upos", "swag", "squad"])
def test_files_of_the_task(name, runs, tmp_path):
    fields = write_task(tmp_path / "files", name, count=16)
    status, _, said = predict(model=runs[name], input=fields["train"], output=str(tmp_path / "out.jsonl"), n_best=3)
    assert status == 0, said
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 16
    model = load(runs[name])
    examples = read_examples(fields["train"], model.task)
    predictions = model.predict_examples(examples, n_best=3)
    if name == "squad":
        assert [line["id"] for line in lines] == [f"q{n}" for n in range(16)]
        assert all(e.context[line["start"] : line["end"]] == line["answer"] for e, line in zip(examples, lines))
        assert all(len(line["n_best"]) <= 4 for line in lines)
    elif name == "qnli":
        assert [line["label"] for line in lines] == [prediction.label for prediction in predictions]
    # and a report of them: every part of it is complete, with any text
    sections = task_sections(model, examples, predictions, {"dev": figures_of(model.task, examples, predictions)})
    page = "".join(title + body for title, body in sections)
    assert page.count("<table>") == page.count("</table>") >= 1
    assert page.count("<svg") == page.count("</svg>") >= (0 if name == "swag" else 1)
    assert not re.search(r"<script|href=|src=", page)


def test_a_report_escapes_what_it_shows(runs):
    model = load(runs["sst2"])
    examples = [
        type(example)("<script>alert(1)</script> & so on " * 20, None, label, None, "<b>.tsv", 2)
        for label in ("0", "1")
        for example in [read_example()]
    ]
    predictions = model.predict_examples(examples)
    sections = task_sections(model, examples, predictions, {"dev": figures_of(model.task, examples, predictions)})
    page = "".join(body for _, body in sections)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>" not in page
    assert {title.split(" ")[0] for title, _ in sections} >= {"Scores", "Confusion", "The", "Attention"}


def read_example():
    from bert_elmo_jax.data.tasks import TextExample

    return TextExample("a", None, "0", None, "a", 1)


@pytest.mark.parametrize(
    ("name", "stdin", "more", "message"),
    [
        ("sst2", "good\n\n", {}, "predict: standard input:2: is ''; expected a text that is not empty"),
        ("qnli", "where ?\n", {}, "predict: standard input:1: is ('where ?',); expected (text, pair)"),
        ("squad", "where ?\t \n", {}, "standard input:1: is ('where ?', ' '); expected (question, context)"),
        ("sst2", "", {"input": "/nowhere.tsv"}, "predict: /nowhere.tsv: there is no such file"),
        ("sst2", "", {"input": "/nowhere.txt"}, "/nowhere.txt"),
        ("sst2", "", {"model": "tests/goldens/bert_tiny"}, "was not fine-tuned for a task"),
        ("sst2", "", {"model": "/nowhere/at/all"}, "nowhere"),
    ],
)
def test_what_is_refused(name, stdin, more, message, runs):
    status, lines, said = predict(stdin, **{"model": runs[name], **more})
    assert (status, lines) == (2, [])
    assert message in said
    assert "Traceback" not in said
