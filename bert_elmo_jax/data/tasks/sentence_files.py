"""Read files of sentence pairs, triplets, and scored pairs; their columns are found by name."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bert_elmo_jax.data.arrow_files import is_arrow, open_arrow
from bert_elmo_jax.data.tasks.examples import SentenceExample, a_number
from bert_elmo_jax.data.tasks.files import BadRow, OnBad, parse_json, read_text, stop
from bert_elmo_jax.data.tasks.labels import compose
from bert_elmo_jax.data.tasks.layouts import LAYOUTS, Layout
from bert_elmo_jax.data.tasks.tables import LABEL_NAMES, Record, find_format, read_records, read_text_cell, spell_names

LOSSES = ("in_batch", "triplets", "scores", "cosent")
OF_SCORES = ("scores", "cosent")  # losses of pairs with a score
PAIRS = (("anchor", "positive"), ("sentence1", "sentence2"), ("text", "pair"))  # names of the two texts
NEGATIVE, SCORE = "negative", "score"
# The usual names of columns of scores; others than `score` are read only if the caller names them.
SCORE_NAMES = LABEL_NAMES | {
    "scores", "similarity", "similarity_score", "relatedness", "relatedness_score", "is_duplicate", "점수", "유사도",
}  # fmt: skip
STS = LAYOUTS["stsb"]  # whose files have no header


class Columns(NamedTuple):
    """The columns of a file: two texts or three, and maybe a score."""

    texts: tuple[str, ...]
    score: str | None
    bare: bool = False  # STS-B's own files: tabs even if the name ends in .csv, and no header


def read_sentences(
    path: str | Path, layout: Layout, *, labelled: bool = True, encoding: str = "utf-8", on_bad: OnBad = stop
) -> list[SentenceExample]:
    r"""Read a file of pairs, of triplets, or of pairs with a score.

    The texts are in the columns that `layout` names, or else in anchor and positive, sentence1 and sentence2, or text
    and pair; a third one in `negative`; a score in the layout's label or, if that is "", in `score`. Without either, a
    column of numbers with another usual name of scores, such as `label`, is refused. STS-B's own files need no header.
    `labelled=False` reads the first two texts alone; `on_bad` is as for `read_texts`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.tsv"
    >>> _ = file.write_text("sentence1\tsentence2\tscore\n비가 온다.\t비가 내린다.\t4.8\n", encoding="utf-8")
    >>> [example] = read_sentences(file, Layout("", "", label=""))
    >>> example.texts, example.label
    (('비가 온다.', '비가 내린다.'), 4.8)
    """
    columns = find_columns(path, layout if labelled else replace(layout, label=""), encoding)
    if not labelled:
        columns = Columns(columns.texts[:2], None, columns.bare)
    required = [*columns.texts, *([columns.score] if columns.score else [])]
    table_options = {"layout": "tsv", "bare": STS.bare, "spare": STS.spare} if columns.bare else {}
    examples = []
    check = labelled and columns.score is None
    optional = tuple(SCORE_NAMES) if check else ()
    options: dict[str, Any] = {"encoding": encoding, "on_bad": on_bad, "optional": optional, **table_options}
    records = read_records(path, required, **options)
    if check:
        _check_unused(records, columns, path)
    for record in records:
        empty: list[BadRow] = []
        try:
            texts = tuple(read_text_cell(record, name, path, empty) for name in columns.texts)
            if empty:
                raise empty[0]
            if labelled:
                _check_keys(record, columns, path)
            score = None if columns.score is None else _score(record, columns.score, path)
        except BadRow as error:
            on_bad(error)
        else:
            examples.append(SentenceExample(texts, score, str(path), record.line))
    if not examples:
        raise BadRow(path, 1, "no row can be read", "give a file with texts")
    return examples


def find_columns(path: str | Path, layout: Layout, encoding: str = "utf-8") -> Columns:
    """Return the columns of a file; raise if it has no two columns of texts."""
    named = layout.text, layout.pair or "", layout.label
    names = spell_names(_names(path, encoding), named)

    def missing(column: str) -> bool:  # the column `labels.label` is a key of the object `labels`
        return column not in names and column.split(".")[0] not in names

    if any(named[:2]) and not all(named[:2]):
        raise ValueError(f"text={named[0]!r}, pair={named[1]!r}: name both columns, or neither")
    if named[2] and missing(named[2]):
        raise _no_columns(path, names, repr(named[2]))
    score = named[2] or (SCORE if SCORE in names else None)
    if all(named[:2]):
        texts = named[:2]
    else:
        texts = next((pair for pair in PAIRS if set(pair) <= set(names)), None)  # type: ignore[assignment]
        if (
            texts is None
            and len(STS.bare) <= len(names) <= len(STS.bare) + STS.spare
            and a_number(names[4]) is not None
        ):
            return Columns(("sentence1", "sentence2"), "score", bare=True)
    if texts is None or any(map(missing, texts)):
        listed = ", or ".join(" and ".join(pair) for pair in PAIRS)
        raise _no_columns(path, names, " and ".join(map(repr, named[:2])) if named[0] else f"two texts ({listed})")
    third = (NEGATIVE,) if NEGATIVE in names and NEGATIVE not in texts else ()
    return Columns((*texts, *third), score)


def choose_loss(requested: str, examples: Sequence[SentenceExample]) -> str:
    """Return the loss that suits the columns of the training data, or the requested one if they allow it."""
    first = examples[0]
    triplets, scored = len(first.texts) == 3, first.label is not None
    for example in examples:
        if (len(example.texts) == 3, example.label is not None) != (triplets, scored):
            problem = f"{_describe_columns(example)}, while {first.file} has {_describe_columns(first)}"
            raise BadRow(example.file, 1, problem, "train on files with the same columns")
    loss = requested or ("triplets" if triplets else "scores" if scored else "in_batch")
    no_scores = None if scored else ("no column of scores", "one, named score (or by --label=…)")
    triplet_problem = None
    if not triplets:
        triplet_problem = ("two columns of texts", "a third one, negative")
    elif scored:
        triplet_problem = ("a column of scores, which no triplet needs", "texts alone")
    problems = {
        "triplets": triplet_problem,
        **dict.fromkeys(OF_SCORES, no_scores),
        "in_batch": ("a column of scores, so some pairs are not similar", "pairs of similar texts") if scored else None,
    }
    if loss not in problems:
        raise ValueError(f"config.sentences.loss={loss!r} is not known; use {', '.join(LOSSES)}, or leave it empty")
    if objection := problems[loss]:
        problem = f"{objection[0]}; the loss {loss} needs {objection[1]}"
        raise BadRow(first.file, 1, problem, "add it, remove the other, or choose another config.sentences.loss")
    return loss


def _describe_columns(example: SentenceExample) -> str:
    texts = {2: "two", 3: "three"}[len(example.texts)]
    return f"{texts} columns of texts and {'none' if example.label is None else 'one'} of scores"


def find_top_score(examples: Sequence[SentenceExample]) -> float:
    """Return the score of equal texts: 1 if no score is larger, else 5 as in STS."""
    scores = [example.label for example in examples if example.label is not None]
    largest = max(scores, default=1.0)
    if largest > 5:
        worst = next(example for example in examples if example.label == largest)
        problem = f"the score {largest:g}, expected 0 to 5 (as in STS), or −1 to 1"
        raise BadRow(worst.file, worst.line, problem, "give the score of equal texts: --config.sentences.top_score=…")
    return 1.0 if largest <= 1 else 5.0


def _names(path: str | Path, encoding: str) -> list[str]:
    """Return the cells of a table's first line, or the keys of the first JSON object."""
    if is_arrow(path):
        return list(open_arrow(path).names)
    text = read_text(path, encoding)
    first = text.lstrip().partition("\n")[0]
    ending = find_format(path)
    if ending in ("json", "jsonl"):
        content = parse_json(text if ending == "json" else first, path)
        content = content[0] if isinstance(content, list) and content else content
        return list(content) if isinstance(content, dict) else []
    if ending == "tsv" or first.count("\t") >= len(STS.bare) - 1:
        return [name.strip() for name in first.split("\t")]
    return [name.strip() for name in next(csv.reader(io.StringIO(first)), [])]


def _no_columns(path: str | Path, names: Sequence[str], required: str) -> BadRow:
    shown = ", ".join(repr(name if len(name) < 40 else f"{name[:39]}…") for name in names)
    return BadRow(
        path, 1, f"no {required} among {shown}", "add a header, or name the columns: --text=… --pair=… --label=…"
    )


def _check_unused(records: Sequence[Record], columns: Columns, path: str | Path) -> None:
    """Raise if a column that nothing reads seems to hold scores: without them, every pair counts as similar."""
    rows = [_cells_and_keys(record) for record in records]
    for name in rows[0] if rows else ():
        usual = compose(name.partition(".")[0].casefold()) in SCORE_NAMES and name not in columns.texts
        if usual and all(_is_number(row.get(name)) for row in rows):
            problem = f"the column {name!r} has a number in every row, which nothing would read"
            remedy = f"give --label={name} if the numbers tell similar texts from others, or remove the column"
            raise BadRow(path, 1, problem, remedy)


def _cells_and_keys(record: Record) -> dict[str, Any]:
    """Return the cells, and the values of JSON objects among them: the column `labels.label` is a key of `labels`."""
    objects = {name: value for name, value in record.cells.items() if isinstance(value, dict)}
    keys = {f"{name}.{key}": value for name, values in objects.items() for key, value in values.items()}
    return record.cells | keys


def _is_number(value: Any) -> bool:
    return isinstance(value, bool) or a_number(str(value).strip()) is not None


def _check_keys(record: Record, columns: Columns, path: str | Path) -> None:
    """Raise if a JSON object has a score or a negative that the first one lacks: it would be left out silently."""
    lacking = {SCORE: columns.score is None, NEGATIVE: len(columns.texts) == 2 and NEGATIVE not in columns.texts}
    for name in (name for name, is_lacking in lacking.items() if is_lacking and record.cells.get(name) is not None):
        problem = f"a {name}, and the first row has none"
        raise BadRow(path, record.line, problem, "give every row one, or none; or divide the rows into two files")


def _score(record: Record, column: str, path: str | Path) -> float:
    value = record.cells[column]
    number = None if isinstance(value, bool) else a_number(str(value).strip())
    if number is None:
        problem = f"{column} is {value!r}, expected a number such as 4.5"
        raise BadRow(path, record.line, problem, "correct or remove it; pairs without scores have no such column")
    return number
