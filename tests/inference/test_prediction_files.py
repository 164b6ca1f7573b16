"""Examples of `bert_elmo_jax.inference.predict_file`."""

import pytest

from bert_elmo_jax.data.tasks.examples import TextExample
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predict_file import (
    input_cells,
    json_lines,
    output_cells,
    predict_file,
    read_columns,
    table_rows,
)
from bert_elmo_jax.inference.predictions import Label, Number, Tags


def test_example_of_json_lines():
    assert list(json_lines([TextExample("좋다", None, None, None, "-", 1)], [Number(4.5)])) == [
        '{"text": "좋다", "value": 4.5}'
    ]


def test_example_of_table_rows():
    rows = table_rows({}, [])
    assert list(rows([TextExample("좋다", None, None, None, "-", 1)], [Label("1", 0.75, {"0": 0.25, "1": 0.75})])) == [
        ["text", "predicted", "probability"],
        ["좋다", "1", "0.7500"],
    ]


def test_example_of_input_cells():
    assert input_cells(TextExample("정말 재미있다", None, None, "7", "new.tsv", 2)) == {
        "id": "7",
        "text": "정말 재미있다",
    }


def test_example_of_output_cells():
    assert output_cells(Tags(("서울", "역"), ("B-LOC", "I-LOC"), (0.9, 0.8))) == {
        "words": "서울 역",
        "predicted": "B-LOC I-LOC",
    }


def test_example_of_read_columns():
    assert read_columns(Task("sst2", "classification", Layout("sentence", table="tsv")), "-", "utf-8") == {}


def test_the_input_is_never_replaced(tmp_path):
    (tmp_path / "new.csv").write_text("text\n")
    with pytest.raises(ValueError, match="would replace the input: give another name"):
        predict_file("a model", str(tmp_path / "new.csv"), str(tmp_path / "." / "new.csv"))
