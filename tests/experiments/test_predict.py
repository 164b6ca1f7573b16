"""Predictions from files and standard input, as JSON lines; and their report."""

import json
import re
from typing import NamedTuple

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.inference import TaskModel, predict_file
from bert_elmo_jax.runs.task_report import task_sections
from bert_elmo_jax.runs.task_result import compare_with_baselines, draw_result
from bert_elmo_jax.runs.task_scores import score_name

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


class Predicted(NamedTuple):
    status: int
    lines: list
    err: str


def predict(stdin="", **flags):
    status, out, err = run_program("predict", *(f"--{name}={value}" for name, value in flags.items()), stdin=stdin)
    return Predicted(status, [json.loads(line) for line in out.splitlines()], err)


# The next test reads files of these two.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in ("qnli", "ud_upos"))) for n in LABELS]
)
def test_lines_of_standard_input(name, runs):
    status, lines, err = predict(LINES[name], model=runs[name])
    assert status == 0, err
    assert err.startswith(f"{runs[name]} ({name}): standard input -> standard output, on 1 × cpu\n")
    assert re.search(r"\d+ pieces in \d+ positions \(\d+\.\d% padding\)\n$", err)
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
    candidates = {"n_best": 3} if name == "squad" else {}
    status, _, err = predict(model=runs[name], input=fields["train"], output=str(tmp_path / "out.jsonl"), **candidates)
    assert status == 0, err
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
    compared = compare_with_baselines(model.task, examples, {"dev": (examples, predictions)})
    sections = [draw_result(score_name(model.task), compared, 1, 2), *task_sections(model, examples, predictions)]
    page = "".join(title + body for title, body in sections)
    assert page.count("<table") == page.count("</table>") >= 1
    assert page.count("<svg") == page.count("</svg>") >= (0 if name == "swag" else 1)
    assert not re.search(r"<script|href=|src=", page)


@pytest.mark.parametrize(
    ("name", "stdin", "more", "message"),
    [
        (
            "sst2",
            "good\n\n",
            {},
            "predict: standard input:2: a blank line, expected one example per line; fix or delete the line",
        ),
        ("qnli", "where ?\n", {}, "predict: standard input:1: is ('where ?',); expected (text, pair)"),
        ("squad", "where ?\t \n", {}, "standard input:1: is ('where ?', ' '); expected (question, context)"),
        ("sst2", "", {"input": "/nowhere.tsv"}, "predict: /nowhere.tsv: there is no such file"),
        ("sst2", "", {"input": "/nowhere.txt"}, "/nowhere.txt"),
    ],
)
def test_wrong_inputs_are_refused(name, stdin, more, message, runs):
    status, lines, err = predict(stdin, **{"model": runs[name], **more})
    assert (status, lines) == (2, [])
    assert message in err
    assert "Traceback" not in err


def test_columns_that_are_called_otherwise(runs, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text("후기,답\n영화 좋다,서울\nthe film,역\n", encoding="utf-8")
    done = predict(model=runs["sst2"], input=table, text="후기")
    assert (done.status, [line["text"] for line in done.lines]) == (0, ["영화 좋다", "the film"]), done.err
    done = predict(model=runs["qnli"], input=table, text="후기", pair="답")
    assert (done.status, [line["pair"] for line in done.lines]) == (0, ["서울", "역"]), done.err
    err = predict(model=runs["sst2"], input=table).err
    assert "no column 'sentence' among '후기', '답'" in err and "--text=…" in err
    assert (
        "--pair=답: the model was fine-tuned on single texts" in predict(model=runs["sst2"], input=table, pair="답").err
    )
    assert "was fine-tuned on ud_upos: leave them out" in predict(model=runs["ud_upos"], input=table, text="후기").err


def write_lines(file, count):
    file.write_text("".join(f"the film {n} 좋다\n" * (1 + n % 3) for n in range(count)), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "ending", ["jsonl", *(pytest.param(ending, marks=pytest.mark.long) for ending in ("csv", "tsv"))]
)
def test_a_stopped_prediction_continues(runs, tmp_path, monkeypatch, ending):
    """Its output has the same bytes as an uninterrupted one's, and no prediction is computed twice."""
    source, model = str(write_lines(tmp_path / "in.txt", 20)), runs["sst2"]
    monkeypatch.setattr(predict_file, "AHEAD", 1)
    full_output, target = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    assert predict_file.predict_file(model, source, str(full_output), batch_size=4) == 39
    calls, predict_examples = [], TaskModel.predict_examples

    def stop(self, examples, **options):
        calls.append(len(examples))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return predict_examples(self, examples, **options)

    monkeypatch.setattr(TaskModel, "predict_examples", stop)
    with pytest.raises(KeyboardInterrupt):
        predict_file.predict_file(model, source, str(target), batch_size=4)
    assert not target.exists() and len(calls) == 4
    status, _, err = predict(model=model, input=source, output=str(target), batch_size=4)
    assert status == 0, err
    assert "12 of them are from a stopped run" in err
    assert target.read_bytes() == full_output.read_bytes()
    assert sum(calls[4:]) == 39 - 12
    names = ["in.txt", full_output.name, target.name, f".{full_output.name}.request", f".{target.name}.request"]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    again = predict(model=model, input=source, output=str(target), batch_size=4)
    assert again.status == 0 and "is complete already, by the same command: 39 examples" in again[2]
    assert target.read_bytes() == full_output.read_bytes() and sum(calls[4:]) == 39 - 12


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_stopped_prediction_of_a_json_list_keeps_rows_and_predictions_together(runs, tmp_path, monkeypatch, ending):
    source, target = tmp_path / "in.json", tmp_path / f"out.{ending}"
    source.write_text(json.dumps([{"text": f"film {n}", "n": n} for n in range(9)]) + "\n")
    monkeypatch.setattr(predict_file, "AHEAD", 1)
    options = {"batch_size": 2, "text": "text"}
    predict_file.predict_file(runs["sst2"], str(source), str(tmp_path / f"full.{ending}"), **options)
    calls, predict_examples = [], TaskModel.predict_examples

    def stop(self, examples, **options):
        calls.append(len(examples))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict_examples(self, examples, **options)

    monkeypatch.setattr(TaskModel, "predict_examples", stop)
    with pytest.raises(KeyboardInterrupt):
        predict_file.predict_file(runs["sst2"], str(source), str(target), **options)
    predict_file.predict_file(runs["sst2"], str(source), str(target), **options)
    assert target.read_bytes() == (tmp_path / f"full.{ending}").read_bytes() and sum(calls[3:]) == 9 - 4


def test_another_input_or_model_begins_again(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(predict_file, "AHEAD", 1)
    source, target = write_lines(tmp_path / "in.txt", 8), tmp_path / "out.jsonl"
    for name, content in (("sst2", None), ("qnli", "a\tb\n"), ("sst2", "좋다\n"), ("sst2", None)):
        monkeypatch.setattr(target.__class__, "replace", fail_once(target.__class__.replace))
        source.write_text(content or "the film\n" * 3, encoding="utf-8")
        with pytest.raises(OSError, match="stopped"):
            predict_file.predict_file(runs[name], str(source), str(target), batch_size=1)
        assert (tmp_path / "out.jsonl.partial" / "progress.json").is_file()
    monkeypatch.undo()
    source.write_text("영화\n좋다\n", encoding="utf-8")
    status, _, err = predict(model=runs["sst2"], input=str(source), output=str(target))
    assert status == 0 and "stopped run" not in err
    assert [json.loads(line)["text"] for line in target.read_text(encoding="utf-8").splitlines()] == ["영화", "좋다"]


def fail_once(replace):
    def moved(self, target):
        if self.name == "lines":
            raise OSError("stopped")
        return replace(self, target)

    return moved


def test_outputs_that_exist(runs, tmp_path):
    source, thesis = write_lines(tmp_path / "in.txt", 2), tmp_path / "thesis.txt"
    thesis.write_text("a thesis")
    flags = {"model": runs["sst2"], "input": str(source), "output": str(thesis)}
    status, _, err = predict(**flags)
    assert (status, thesis.read_text()) == (2, "a thesis")
    assert err.endswith("thesis.txt exists: give another name, or --overwrite to replace it\n")
    assert predict(**flags, overwrite=True).status == 0
    assert len(thesis.read_text(encoding="utf-8").splitlines()) == 3
    status, _, err = predict(**{**flags, "output": "/dev/stdout"})
    assert status == 0 and "standard output" in err
    status, _, err = predict(**flags, guard_formulas=True, overwrite=True)
    assert status == 2 and "--guard_formulas is for tables, and --output=" in err
    status, _, err = predict(**{**flags, "output": str(tmp_path)})
    assert status == 2 and "is a folder: give the name of a file" in err


def test_inputs_that_cannot_be_read(runs, tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "a.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    for name, message in {
        "a.xlsx": "a zip or Excel file, expected text; save the sheet as CSV in UTF-8",
        "a.xls": "an old Excel or Word file, expected text; save the sheet as CSV",
        ".": "a folder, expected a file; name the file in it",
        "none": "there is no such file",
    }.items():
        status, _, err = predict(model=runs["stsb"], input=str(tmp_path / name))
        assert status == 2 and message in err, (name, err)


def test_rows_that_cannot_be_read_are_skipped(runs, tmp_path):
    table, target = tmp_path / "new.csv", tmp_path / "predictions.csv"
    table.write_text('sentence,id\n"a, b",1\n,2\nc\n좋다,4\n', encoding="utf-8")
    lines = tmp_path / "new.txt"
    lines.write_text("the film\n \n영화\n", encoding="utf-8")
    model = {"model": str(write(tmp_path / "run", "classification", labels=LABELS["sst2"], layout=Layout("sentence")))}
    status, _, err = predict(input=table, output=target, **model)
    assert status == 2 and "new.csv:4: 1 column, expected 2" in err and not target.exists()
    status, _, err = predict(input=table, output=target, on_bad="skip", **model)
    assert status == 0, err
    assert "warning: 2 of 4 rows of" in err and "2 predictions in" in err
    assert "\ncompiling:   0%| 0/2 examples" in err and "\npredicting: 100%| 2/2 examples [" in err
    status, _, err = predict(stdin="so good\nbad\n", output=tmp_path / "lines.jsonl", **model)
    assert "\npredicting: 2 examples [" in err and "/2 examples" not in err  # the length of a stream is not known
    assert [row.split(",")[0] for row in target.read_text(encoding="utf-8-sig").splitlines()] == [
        "sentence",
        '"a',
        "좋다",
    ]
    skipped = (tmp_path / "predictions.csv.skipped.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["line"] for line in skipped] == [3, 4]
    assert predict(input=lines, **model).status == 2
    status, read, err = predict(input=lines, on_bad="skip", **model)
    assert (status, len(read)) == (0, 2) and "line 2" in err
