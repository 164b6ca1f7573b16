"""Predictions as the lines of a file: JSON, or a table with the columns of the input."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bert_elmo_jax.data.tasks.examples import ChoiceExample, Question, SentenceExample, TextExample
from bert_elmo_jax.data.tasks.trees import word_lines, write_tree
from bert_elmo_jax.files import guard_formula
from bert_elmo_jax.inference.predictions import (
    AnswerSpan,
    CharacterTags,
    Choice,
    Entities,
    Label,
    Labels,
    Number,
    Numbers,
    Prediction,
    Tags,
    Tree,
    to_json,
)

Cells = dict[str, Any]
Writer = Callable[[Sequence[Any], Sequence[Prediction]], Iterator[str]]

CONLLU = ".conllu"
QUOTED = re.compile(r'[",\r\n]|^\s|\s$')  # cells of a csv that need quotes


class InputRows:
    """The cells of an input's rows, which are read once and in order.

    >>> InputRows(["text"], iter([("a.csv", 2, {"text": "no"}), ("a.csv", 3, {"text": "yes"})])).find("a.csv", 3)
    {'text': 'yes'}
    """

    def __init__(self, names: Sequence[str], rows: Iterator[tuple[str, int, Cells]]):
        self.names, self._rows = list(names), rows

    def find(self, file: str, line: int) -> Cells:
        """Return the cells of a row, which is behind the one before."""
        return next(cells for name, number, cells in self._rows if (name, number) == (file, line))


def choose_writer(
    ending: str, columns: InputRows | None, header: list[str], guarded: bool = False, tag_column: str = "",
    has_pairs: bool = False,
) -> Writer:  # fmt: skip
    """Return a function that turns examples and predictions into the lines of a file with this ending.

    `columns` come from `read_columns`. `header` is empty, or has the names that a table already begins with. With
    `has_pairs`, a table has a column for second texts even if the first example is a single text.
    """
    if ending == ".parquet":  # whose lines `write_parquet` reads
        cells = table_cells(columns, [], output_cells)
        return lambda examples, predictions: (
            json.dumps(row, ensure_ascii=False).encode(errors="replace").decode()
            for _, row in cells(examples, predictions)
        )
    if ending == CONLLU:
        return partial(conllu_lines, tag_column=tag_column)
    if ending not in (".csv", ".tsv"):
        return json_lines
    rows, join = table_rows(columns, header, guarded, has_pairs), _csv if ending == ".csv" else _tsv
    return lambda examples, predictions: map(join, rows(examples, predictions))


def json_lines(examples: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield a JSON object for each prediction.

    >>> list(json_lines([TextExample("좋다", None, None, None, "-", 1)], [Number(4.5)]))
    ['{"text": "좋다", "value": 4.5}']
    """
    for example, prediction in zip(examples, predictions):
        yield json.dumps({**input_cells(example), **to_json(prediction)}, ensure_ascii=False)


def conllu_lines(examples: Sequence[Any], predictions: Sequence[Any], tag_column: str = "") -> Iterator[str]:
    """Yield the lines of each tree in CoNLL-U, with all other columns and comments of the input."""
    for example, tree in zip(examples, predictions):
        source = example.source
        if source is None:
            source = word_lines(tree.words, example.tags, tag_column)
        yield write_tree(source, tree.heads, tree.relations)


def table_rows(
    columns: InputRows | None, header: list[str], guarded: bool = False, has_pairs: bool = False
) -> Callable[[Sequence[Any], Sequence[Prediction]], Iterator[list[str]]]:
    """Return a function that yields rows of input and prediction; a `_` keeps equal names apart.

    The names come first, unless `header` has them already; it is filled in. `guarded` cells are no formulas.
    """
    cells = table_cells(columns, header, rounded_cells, has_pairs)

    def rows(examples: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[list[str]]:
        for first, row in cells(examples, predictions):
            if first:
                yield [_cell(name, guarded) for name in header]
            yield [_cell(row.get(name, ""), guarded) for name in header]

    return rows


def table_cells(
    columns: InputRows | None,
    header: list[str],
    predicted_cells: Callable[[Prediction], Cells],
    has_pairs: bool = False,
) -> Callable[[Sequence[Any], Sequence[Prediction]], Iterator[tuple[bool, Cells]]]:
    """Return a function that yields (True for the first row, cells of input and prediction), and fills in `header`."""

    def cells_of(examples: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[tuple[bool, Cells]]:
        for example, prediction in zip(examples, predictions):
            cells = columns.find(example.file, example.line) if columns else input_cells(example)
            if has_pairs:
                cells.setdefault("pair", None)
            input_names = columns.names if columns else list(cells)
            outputs = {_free(name, input_names): value for name, value in predicted_cells(prediction).items()}
            first = not header
            if first:
                header.extend([*input_names, *outputs])
            yield first, {**dict.fromkeys(input_names), **cells, **outputs}

    return cells_of


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def input_cells(example: Any) -> Cells:
    """Return the id of an example, if it has one, and its text."""
    number = getattr(example, "id", None)
    cells: Cells = {} if number is None else {"id": number}
    if isinstance(example, Question):
        return {**cells, "question": example.text}
    if isinstance(example, ChoiceExample):
        return {**cells, "given": example.text}
    if isinstance(example, TextExample):
        return {**cells, "text": example.text, **({} if example.pair is None else {"pair": example.pair})}
    if isinstance(example, SentenceExample):
        return {**cells, "text": example.text, "pair": example.pair}
    return cells  # the prediction of tags has the words


def output_cells(prediction: Prediction) -> Cells:
    """Return a prediction as cells of a table.

    >>> output_cells(Tags(("서울", "역"), ("B-LOC", "I-LOC"), (0.9, 0.8)))
    {'words': '서울 역', 'predicted': 'B-LOC I-LOC'}
    >>> output_cells(CharacterTags(tuple("서울역"), ("B-LC", "I-LC", "I-LC"), (0.9, 0.8, 0.8)))
    {'text': '서울역', 'entities': '서울역/LC'}
    """
    match prediction:
        case Label():
            return {"predicted": prediction.label, "probability": prediction.probability}
        case Labels():
            return {"predicted": ", ".join(prediction.labels), **prediction.probabilities}
        case Numbers():
            return dict(prediction.values)
        case Number():
            return {"predicted": prediction.value}
        case CharacterTags():
            listed = ", ".join(f"{text}/{kind}" for kind, text in prediction.entities)
            return {"text": "".join(prediction.words), "entities": listed}
        case Tags():
            return {"words": " ".join(prediction.words), "predicted": " ".join(prediction.tags)}
        case Tree():
            heads = " ".join(map(str, prediction.heads))
            return {"words": " ".join(prediction.words), "heads": heads, "predicted": " ".join(prediction.relations)}
        case Entities():
            return {"entities": ", ".join(f"{entity.text}/{entity.label}" for entity in prediction.entities)}
        case Choice():
            probability = prediction.probabilities[prediction.choice]
            return {"predicted": prediction.choice, "choice": prediction.text, "probability": probability}
        case AnswerSpan():
            return {"predicted": prediction.answer, "probability": prediction.probability}


def rounded_cells(prediction: Prediction) -> Cells:
    """Return `output_cells` for people to read: probabilities have four digits; predicted numbers keep theirs.

    >>> rounded_cells(Label("a", 0.98765432, {})), rounded_cells(Number(0.0000123))
    ({'predicted': 'a', 'probability': '0.9877'}, {'predicted': 1.23e-05})
    """
    cells = output_cells(prediction)
    if isinstance(prediction, Number | Numbers):
        return cells
    return {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in cells.items()}


def _csv(cells: Sequence[str]) -> str:
    # Not csv.writer, which until Python 3.13 leaves some line breaks unquoted.
    return ",".join('"' + cell.replace('"', '""') + '"' if QUOTED.search(cell) else cell for cell in cells)


def _tsv(cells: Sequence[str]) -> str:
    return "\t".join(re.sub(r"[\t\r\n]+", " ", cell) for cell in cells)


def _cell(value: Any, guarded: bool) -> str:
    if isinstance(value, int | float):  # no formula, even if it is negative
        return json.dumps(value)
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()  # NUL and half characters are no text
    return guard_formula(text) if guarded else text
