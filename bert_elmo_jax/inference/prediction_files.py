"""Predictions as JSON lines, or as a table with the columns of the input."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.tasks.examples import ChoiceExample, Question, TextExample
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.data.tasks.tables import FORMATS, read_records
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags, to_json

Cells = dict[str, Any]
Writer = Callable[[Sequence[Any], Sequence[Prediction]], Iterator[str]]


def choose_writer(task: Task, source: str, encoding: str, target: str) -> Writer:
    """Return a function that turns examples and predictions into the lines of a file of this name."""
    ending = Path(target).suffix.lower()
    if ending not in (".csv", ".tsv"):
        return json_lines
    rows = table_rows(read_columns(task, source, encoding))
    return lambda examples, predictions: map(_csv if ending == ".csv" else _tsv, rows(examples, predictions))


def json_lines(examples: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield a JSON object for each prediction."""
    for example, prediction in zip(examples, predictions):
        yield json.dumps({**input_cells(example), **to_json(prediction)}, ensure_ascii=False)


def table_rows(columns: Mapping[int, Cells]) -> Callable[[Sequence[Any], Sequence[Prediction]], Iterator[list[str]]]:
    """Return a function that yields rows: the columns of the input (or its text) and the prediction; names come first.

    A prediction's column gets a `_` if the input has a column of that name.
    """
    before = list(dict.fromkeys(name for cells in columns.values() for name in cells))
    names: list[str] = []

    def rows(examples: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[list[str]]:
        for example, prediction in zip(examples, predictions):
            cells = columns[example.line] if columns else input_cells(example)
            found = {name + "_" * (name in cells): value for name, value in output_cells(prediction).items()}
            if not names:
                names.extend(dict.fromkeys([*(before or cells), *found]))
                yield names
            row = {**cells, **found}
            yield [_cell(row.get(name, "")) for name in names]

    return rows


def input_cells(example: Any) -> Cells:
    """Return the id of an example, if it has one, and its text."""
    number = getattr(example, "id", None)
    found: Cells = {} if number is None else {"id": number}
    if isinstance(example, Question):
        return {**found, "question": example.text}
    if isinstance(example, ChoiceExample):
        return {**found, "given": example.text}
    if isinstance(example, TextExample):
        return {**found, "text": example.text, **({} if example.pair is None else {"pair": example.pair})}
    return found  # the prediction of tags has the words


def output_cells(prediction: Prediction) -> Cells:
    """Return a prediction as cells of a table."""
    match prediction:
        case Label():
            return {"predicted": prediction.label, "probability": prediction.probability}
        case Number():
            return {"predicted": prediction.value}
        case Tags():
            return {"words": " ".join(prediction.words), "predicted": " ".join(prediction.tags)}
        case Choice():
            probability = prediction.probabilities[prediction.choice]
            return {"predicted": prediction.choice, "choice": prediction.text, "probability": probability}
        case AnswerSpan():
            return {"predicted": prediction.answer, "probability": prediction.probability}


def read_columns(task: Task, source: str, encoding: str) -> Mapping[int, Cells]:
    """Return the cells of each row of an input table by its line; nothing for other inputs."""
    layout, ending = task.layout, Path(source).suffix.lower()
    if not isinstance(layout, Layout) or source == "-" or ending == ".txt" or not (layout.table or ending in FORMATS):
        return {}
    records = read_records(
        source, [name for name in (layout.text, layout.pair) if name], layout=layout.table, bare=layout.bare,
        spare=layout.spare, tolerance=layout.tolerance, encoding=encoding, fallback=layout.fallback,
    )  # fmt: skip
    return {record.line: record.cells for record in records}


def _csv(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _tsv(cells: Sequence[str]) -> str:
    return "\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in cells)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
