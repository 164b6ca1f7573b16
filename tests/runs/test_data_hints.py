"""Likely mistakes in a user's own table: hints while it is read, and rows that are skipped."""

import json

import pytest

from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.layouts import Layout, read_texts
from bert_elmo_jax.data.tasks.task import read_examples, task_named
from bert_elmo_jax.runs.task_data import read_data
from experiments.configs.finetune import base


def write(path, rows, header="review,stars"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def read(folder, rows, dev=None, **fields):
    dev_rows = [row.replace("text", "other") for row in rows]
    files = {"train": write(folder / "train.csv", rows), "dev": dev or write(folder / "dev.csv", dev_rows)}
    return read_data(base(**{"task": "classification", "text": "review", "label": "stars", **files, **fields}))


RATED = [f"text {n},{1 + n % 5}" for n in range(40)]
LABELLED = [f"text {n},{n % 2}" for n in range(40)]


def test_ratings_and_small_dev(tmp_path, capsys):
    read(tmp_path, RATED)
    hints = capsys.readouterr().err
    assert hints.startswith("warning: the labels are the numbers 1 to 5, and") and "--task=regression" in hints
    assert hints.count("warning") == 1
    read(tmp_path, LABELLED, dev="0.1")
    hints = capsys.readouterr().err
    assert "warning: the development data have 4 rows: one row is worth 25.0 points of the score" in hints
    read(tmp_path, LABELLED, dev=write(tmp_path / "few.csv", ["a,1", "b,1"]))
    assert "warning: no row of the development data has the label '0': hold out more" in capsys.readouterr().err
    for options in ({"rows": LABELLED}, {"rows": RATED, "task": "regression"}, {"rows": LABELLED, "dev": "0.5"}):
        read(tmp_path, **options)
        assert "warning" not in capsys.readouterr().err
    read(tmp_path, RATED, dev="0.1", task="regression")
    assert "the correlation is computed on 4 examples" in capsys.readouterr().err


def test_labels_that_may_not_be_meant(tmp_path, capsys):
    read(tmp_path, [f"text {n},{label}" for n, label in enumerate(["Good", "good", "bad", "1", "1.0"] * 8)])
    hints = capsys.readouterr().err
    assert hints.startswith("warning: the labels '1' and '1.0' and 'Good' and 'good' look alike, but each is a label")
    read(tmp_path, [f"text {n},user{n}" for n in range(40)], dev="0.1")
    hints = capsys.readouterr().err
    assert "or 31 more: hold out more" in hints
    assert "all rows with the label 'user" in hints and "were held out, so it is not learned: give more rows" in hints


def test_texts_in_both_parts(tmp_path, capsys):
    read(tmp_path, LABELLED[:2] * 20, dev="0.5")
    assert (
        "warning: 20 of the 20 texts of the development data are in the training data, too" in capsys.readouterr().err
    )
    read(tmp_path, [*LABELLED, *LABELLED[:2]], dev="0.5")
    assert "warning" not in capsys.readouterr().err


def test_quotation_marks_in_a_tsv(tmp_path, capsys):
    for mark, hints in (('"', 1), ("", 0)):
        table = tmp_path / "train.tsv"
        rows = [f"{mark}text {n}{mark}\t{n % 2}" for n in range(40)]
        table.write_text("\n".join(["review\tstars", *rows]), encoding="utf-8")
        read_data(base(task="classification", train=str(table), dev="0.5", text="review", label="stars"))
        assert (
            capsys.readouterr().err.count("texts are in quotation marks, which belong to the text in a .tsv") == hints
        )


def test_a_share_in_per_cent(tmp_path):
    with pytest.raises(ValueError, match=r"--dev=10%: a share is written as a number below 1, such as --dev=0\.1"):
        read(tmp_path, LABELLED, dev="10%")


def test_equal_scores_have_no_correlation(tmp_path):
    with pytest.raises(ValueError, match=r"dev\.csv: 3\.0 is the score of all 40 examples, but a correlation needs"):
        rows = [f"text {n},{n}" for n in range(40)]
        same = [f"text {n},3" for n in range(40)]
        read(tmp_path, rows, dev=write(tmp_path / "dev.csv", same), task="regression")


def test_utf_8_is_not_read_as_windows_1252(tmp_path):
    with pytest.raises(ValueError, match=r"train\.csv:3: UTF-8, not CP1252; give --encoding=utf-8"):
        read(tmp_path, ["plain,0", "café,1"], encoding="cp1252")


def test_the_tutorials_give_no_hints(capsys):
    for file, text, label in (("authors", "sentence", "author"), ("reviews", "review", "liked")):
        table = f"docs/tutorials/{file}.csv"
        read_data(base(task="classification", train=table, dev="0.2", text=text, label=label))
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "Review"}, "no column 'Review' among 'review', 'stars'.*did you mean 'review'"),
        ({"text": "reveiw", "label": "Stars"}, "did you mean 'review' and 'stars'"),
        ({"text": "body"}, "give the column names of this file"),
    ],
)
def test_names_of_columns(tmp_path, columns, message):
    file = write(tmp_path / "train.csv", LABELLED)
    with pytest.raises(BadRow, match=message):
        read_texts(file, Layout(**{"text": "review", "label": "stars", **columns}))
    lines = tmp_path / "train.jsonl"
    lines.write_text('{"review": "a", "stars": 1}\n', encoding="utf-8")
    with pytest.raises(BadRow, match=r"did you mean|add it, or give the name"):
        read_texts(lines, Layout(**{"text": "review", "label": "stars", **columns}))


@pytest.mark.parametrize("label", ["NaN", "null", "NULL", "<NA>", "#N/A"])
def test_a_missing_label_is_asked_about(tmp_path, label):
    with pytest.raises(BadRow, match=f"train.csv:42: the label '{label}'.*is it a label, or is the label missing"):
        read(tmp_path, [*LABELLED, f"text,{label}"])
    data = read(tmp_path, [*LABELLED, f"text,{label}"], on_bad="skip")
    assert data.task.labels == ("0", "1") and len(data.train) == 40


BAD = [*LABELLED, ",1", "a,1,b", "only", "c,", "", "d,nan", '"e",0']


def test_bad_rows_are_skipped(tmp_path, capsys):
    with pytest.raises(BadRow, match=r"train\.csv:43: 3 columns"):
        read(tmp_path, BAD)
    data = read(tmp_path, BAD, on_bad="skip")
    assert (len(data.train), len(data.dev), len(data.skipped)) == (41, 41, 12)
    assert sorted(row.line for row in data.skipped if row.file.endswith("train.csv")) == [42, 43, 44, 45, 46, 47]
    hints = capsys.readouterr().err
    assert hints.startswith(f"warning: 6 of 47 rows of {tmp_path / 'train.csv'} are skipped: line 42 (the text ")
    lines = tmp_path / "train.jsonl"
    lines.write_text('{"review": "a"}\n{"review": 1, "stars": 2}\n{\n{"review": "b", "stars": 2}\n', encoding="utf-8")
    skipped = []
    examples = read_examples(lines, task_named("classification", text="review", label="stars"), on_bad=skipped.append)
    assert [example.text for example in examples] == ["b"] and len(skipped) == 3
    with pytest.raises(BadRow, match="only blank lines, expected a header and rows"):
        read_texts(
            write(tmp_path / "x.csv", ["", ","], header=""), Layout("review", None, "stars"), on_bad=skipped.append
        )
    with pytest.raises(BadRow, match="no row can be read"):
        read_texts(write(tmp_path / "x.csv", [",1"]), Layout("review", None, "stars"), on_bad=skipped.append)
    with pytest.raises(ValueError, match="on_bad=skip is for tables with a text in each row"):
        read_examples("dev.json", task_named("squad"), on_bad=skipped.append)


def test_pairs_for_sentence_vectors_are_skipped(tmp_path):
    file = write(tmp_path / "sts.csv", ["a,b,1.0", "a,,2.0", "a,b,x"], header="sentence1,sentence2,score")
    skipped = []
    examples = read_examples(file, task_named("sentences"), on_bad=skipped.append)
    assert len(examples) == 1 and [row.line for row in skipped] == [3, 4]
    assert json.dumps([row.problem for row in skipped]).count("sentence2") == 1
