"""Predictions for the examples of a file or of standard input, as JSON lines or as a table with the input's columns."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from bert_elmo_jax.data.tasks.examples import ChoiceExample, Question, TextExample
from bert_elmo_jax.data.tasks.files import BadRow, read_lines
from bert_elmo_jax.data.tasks.layouts import Layout
from bert_elmo_jax.data.tasks.tables import FORMATS, read_records
from bert_elmo_jax.data.tasks.task import Task, read_examples
from bert_elmo_jax.files import open_atomically, read_json
from bert_elmo_jax.inference.load_model import load
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags, to_json
from bert_elmo_jax.inference.task_model import Predictor, TaskModel, to_example
from bert_elmo_jax.train.devices import describe_devices

Cells = dict[str, Any]
Writer = Callable[[Sequence[Any], Sequence[Prediction]], Iterator[str]]

AHEAD = 64  # batches that are sorted together


def predict_file(
    model: str,
    source: str = "-",
    target: str = "-",
    *,
    n_best: int = 20,
    batch_size: int = 32,
    encoding: str | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
) -> int:
    """Predict each example of `source`, write the predictions to `target`, and return their number.

    "-" is standard input or output. A file appears under its name only when it is complete. `encoding` is the
    source's; by default the encoding of the run's own files.
    """
    if "-" not in (source, target) and Path(source).resolve() == Path(target).resolve():
        raise ValueError(f"--output={target} would replace the input: give another name")
    loaded = load(model, dtype=dtype)
    if not isinstance(loaded, Predictor):
        raise ValueError(f"--model={model} was not fine-tuned for a task: give a run of experiments.finetune")
    encoding = encoding or str(read_json(Path(model, "run.json"), default={}).get("encoding", "utf-8"))
    names = "standard input" if source == "-" else source, "standard output" if target == "-" else target
    print(f"{model} ({loaded.task.name}): {' -> '.join(names)}, on {describe_devices()}", file=sys.stderr)
    lines = choose_writer(loaded.task, source, encoding, target)

    def write(out: Any) -> int:
        count = 0
        with tqdm(desc="predicting", unit="examples", disable=target == "-") as bar:
            for some in _read_examples(loaded.task, source, encoding, AHEAD * batch_size):
                found = loaded.predict_examples(some, batch_size=batch_size, n_best=n_best, progress=False)
                out.writelines(f"{line}\n" for line in lines(some, found))
                out.flush()
                bar.update(len(some))
                count += len(some)
        return count

    try:
        if target == "-":
            count = write(sys.stdout)
            print_work(loaded)
            return count
        marked = Path(target).suffix.lower() == ".csv"  # the mark tells Excel that it is UTF-8
        with open_atomically(target, encoding="utf-8-sig" if marked else "utf-8") as out:
            count = write(out)
        print(f"{count:,} predictions in {target}", file=sys.stderr)
        print_work(loaded)
        return count
    except UnicodeDecodeError as error:  # of standard input; files report the line themselves
        raise ValueError(f"standard input is not {error.encoding}: {error}; convert it first") from error


def print_work(model: Predictor) -> None:
    """Print the pieces that a model with a head has read, and its share of padding; networks read words."""
    if isinstance(model, TaskModel):
        print(model.work, file=sys.stderr)


def _read_examples(task: Task, source: str, encoding: str, size: int) -> Iterator[Sequence[Any]]:
    """Yield the examples, `size` at a time; from a terminal one at a time."""
    if source != "-" and Path(source).suffix != ".txt":
        whole = read_examples(source, task, labelled=False, encoding=encoding)
        yield from (whole[at : at + size] for at in range(0, len(whole), size))
        return
    size = 1 if source == "-" and sys.stdin.isatty() else size
    some: list[Any] = []
    for number, line in enumerate(sys.stdin if source == "-" else read_lines(source, encoding), start=1):
        some.append(_read_line(task, line.rstrip("\n"), source, number))
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _read_line(task: Task, line: str, source: str, number: int) -> Any:
    value: Any = line
    if task.kind == "choice":
        first, *choices = line.split("\t")
        value = (first, choices)
    elif task.kind == "questions" or task.pairs:
        value = tuple(line.split("\t"))
    try:
        return to_example(task, value, number)
    except ValueError as error:
        name = "standard input" if source == "-" else source
        problem = str(error).partition(f"input {number} ")[2] or str(error)
        raise BadRow(name, number, problem, "fix or delete the line") from None


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
    """Return a function that yields rows of input and prediction, after the names; a `_` keeps equal names apart."""
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
