"""Read tables: unquoted tsv as in GLUE, quoted csv, JSON lines, a JSON list, or lines of label and text."""

import csv
import functools
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.arrow_files import is_arrow, open_arrow
from bert_elmo_jax.data.corpora.reading import plain_name
from bert_elmo_jax.data.corpora.table_texts import explain_csv_error
from bert_elmo_jax.data.tasks.files import BadRow, OnBad, Row, check_characters, lines_of, parse_json, read_text, stop
from bert_elmo_jax.data.tasks.labels import compose
from bert_elmo_jax.did_you_mean import nearest

Rows = Iterator[tuple[int, list[str]]]  # the line and the cells of each row
LEAVE_OUT = "remove the row (--on_bad=skip leaves out all rows that cannot be read, and lists them)"
FORMATS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}

MOST_SHOWN, MOST_COMPARED = 30, 1000  # columns in a message, and those among which a similar name is looked for
# The usual names of columns, by which a header is told from a row in files that need none.
LABEL_NAMES = frozenset(("label", "labels", "gold_label", "class", "category", "target", "score", "레이블"))
COLUMN_NAMES = LABEL_NAMES | {
    "id", "idx", "index", "guid", "genre", "filename", "year", "source", "text", "text1", "text2", "text_a", "text_b",
    "pair", "sentence", "sentence1", "sentence2", "premise", "hypothesis", "question", "question1", "question2",
    "document", "title", "review", "query", "passage", "텍스트", "문장", "문장1", "문장2", "전제", "가설",
}  # fmt: skip
csv.field_size_limit(2**31 - 1)  # a cell may hold a long document; Python's own limit is 131,072 characters


@dataclass(frozen=True)
class Record:
    """A row: its line, which no other row of the file has (see `Row`), and its cells by column name."""

    line: int
    cells: dict[str, Any]


def read_records(
    path: str | Path,
    required: Sequence[str],
    *,
    layout: str | None = None,
    bare: Sequence[str] = (),
    spare: int = 0,
    tolerance: float = 0.0,
    encoding: str = "utf-8",
    fallback: str | None = None,
    on_bad: OnBad = stop,
    optional: Sequence[str] | None = None,
) -> list[Record]:
    r"""Return the rows of a table; `layout` (tsv, csv, jsonl, json or spaced) defaults to the file's ending.

    `required` are the columns. Of a Parquet or Arrow file, these and the `optional` ones are read, by default all.
    `bare` names the columns of a file without a header, and rows may have `spare` additional ones. Rows that lack
    columns are skipped up to the fraction `tolerance`. In `spaced` files, a line is the label, a space and the text.
    `on_bad` gets the errors about single rows.
    """
    if is_arrow(path):
        return list(read_arrow_records(path, required, optional))
    layout = layout or find_format(path)
    # Before its name is judged: spreadsheets, folders and missing files have messages of their own.
    text = read_text(path, encoding, fallback, keep_ends=layout == "csv")
    if layout == "tsv" and find_format(path) == "csv" and "\t" not in text.partition("\n")[0]:
        # A table of one's own for a task of tab-separated files, among which STS-B's are named .csv, too.
        layout, text = "csv", read_text(path, encoding, fallback, keep_ends=True)
    if layout is None:
        ending = Path(path).suffix
        problem = f"a file with the ending {ending!r}" if ending else "a file without an ending"
        endings = ", ".join((*FORMATS, ".parquet", ".arrow"))
        raise BadRow(path, 1, f"{problem}, expected {endings}", "rename it to say what it is")
    if layout == "jsonl":
        lines = ((n, functools.partial(parse_json, line, path, n)) for n, line in _lines(text, path, on_bad))
        return _records(lines, path, required, on_bad)
    if layout == "json":
        content = parse_json(text, path)
        if not isinstance(content, list) or not content:
            problem = f"a JSON {_kind(content)}, expected a list of objects"
            raise BadRow(path, 1, problem, "give the official file, or name it .jsonl")
        keys = [item.get("guid") if isinstance(item, dict) else None for item in content]
        places: Sequence[int] = lines_of(text, "guid", keys)
        if len(set(places)) < len(places):  # items without a guid, or several on one line
            places = [Row(number) for number in range(1, len(content) + 1)]
        items = ((place, lambda item=item: item) for item, place in zip(content, places))
        return _records(items, path, required, on_bad)
    if layout == "spaced":
        records = [Record(n, dict(zip(bare, line.split(" ", 1)))) for n, line in _lines(text, path, on_bad)]
        for record in records:
            if len(record.cells) < 2:
                problem = f"only {record.cells[bare[0]]!r}, expected {' and '.join(bare)} with a space between"
                on_bad(BadRow(path, record.line, problem, "add the missing one"))
        return [record for record in records if len(record.cells) > 1]
    rows = (
        _csv(text, path, on_bad)
        if layout == "csv"
        else ((n, line.split("\t")) for n, line in _lines(text, path, on_bad))
    )
    return _table(rows, path, required, bare, spare, tolerance, on_bad)


def _records(
    items: Iterable[tuple[int, Callable[[], Any]]], path: str | Path, required: Sequence[str], on_bad: OnBad
) -> list[Record]:
    """Return the records of JSON objects, each with its line and the function that reads it."""
    records = []
    for line, read in items:
        try:
            records.append(_record(read(), path, line, required))
        except BadRow as error:
            on_bad(error)
    return records


def find_format(path: str | Path) -> str | None:
    """Return the format of a table by its ending, before one of a compressed file; None for other endings.

    >>> find_format("train.CSV"), find_format("train.jsonl.gz"), find_format("train.doc")
    ('csv', 'jsonl', None)
    """
    return FORMATS.get(Path(plain_name(path)).suffix)


def read_arrow_records(
    path: str | Path, required: Sequence[str], optional: Sequence[str] | None = None
) -> Iterator[Record]:
    """Yield the rows of a Parquet or Arrow file, or of a saved data set, numbered from 1."""
    table = open_arrow(path)
    spelled = dict(zip(spell_names(table.names, required), table.names))
    columns = {spelled.get(name, spelled.get(name.split(".")[0], name)): None for name in required}
    columns |= dict.fromkeys(name for name in table.names if optional is None or name in optional)
    table.check_columns(list(columns))
    columns |= dict.fromkeys(table.columns if optional is None else ())
    if not table.count:
        raise BadRow(path, 1, "no rows, expected examples", "check that it was written or downloaded completely")
    for number, cells in enumerate(table.rows(list(columns)), start=1):
        yield _record(cells, path, number, required)


def _lines(text: str, path: str | Path, on_bad: OnBad) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        if line.strip():
            yield number, line
        else:
            on_bad(BadRow(path, number, "a blank line, expected an example", LEAVE_OUT))


def _csv(text: str, path: str | Path, on_bad: OnBad) -> Rows:
    reader = csv.reader(io.StringIO(text.rstrip("\r\n"), newline="\n"), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            else:
                on_bad(BadRow(path, line, "a blank line, expected an example", LEAVE_OUT))
            line = reader.line_num + 1
    except csv.Error as error:
        reason, remedy = explain_csv_error(error)
        problem = f"invalid csv from here to line {reader.line_num} ({reason})"
        raise BadRow(path, line, problem, remedy) from None


def _table(
    rows: Rows,
    path: str | Path,
    required: Sequence[str],
    bare: Sequence[str],
    spare: int,
    tolerance: float,
    on_bad: OnBad,
) -> list[Record]:
    first_line, first = next(rows, (1, None))
    if first is None:
        raise BadRow(path, 1, "only blank lines, expected a header and rows", "check that the file is complete")
    names = spell_names([name.strip() for name in first], required)
    records = []
    if set(required) <= set(names):
        doubled = next((name for name in names if name and names.count(name) > 1), None)
        if doubled is not None:
            raise BadRow(path, first_line, f"two columns called {doubled!r}", "rename one of them")
        names = _name_columns(names)
    elif (
        len(bare) <= len(names) <= len(bare) + spare
        and set(required) <= set(bare)
        and not _is_header(names[: len(bare)], bare)
    ):
        names = list(bare)
        records.append(Record(first_line, dict(zip(names, first))))
    else:
        raise _no_header(path, first_line, first, required, bare)
    wrong = []
    for line, cells in rows:
        if len(names) <= len(cells) <= len(names) + spare:
            records.append(Record(line, dict(zip(names, cells))))
            continue
        problem = f"{len(cells)} column{'s'[: len(cells) != 1]}, expected {len(names)} ({', '.join(names)})"
        remedy = "a text may contain a tab or a line break: remove it, or save as .csv or .jsonl, which can quote it"
        remedy = "quote texts that contain commas" if find_format(path) == "csv" else remedy
        error = BadRow(path, line, problem, remedy)
        if len(cells) > len(names):
            on_bad(error)
        else:
            wrong.append(error)
    if len(wrong) > tolerance * len(records):
        for error in wrong:
            on_bad(error)
    if not records:
        raise BadRow(path, first_line, "a header without rows, expected examples", "add rows")
    return records


def _name_columns(names: Sequence[str]) -> list[str]:
    """Return names with one, its number, for each column without a name but the first, so that no cell is lost.

    >>> _name_columns(["text", "", ""])
    ['text', '', '_3']
    """
    named, unnamed = [], 0
    for number, name in enumerate(names, start=1):
        unnamed += not name
        if not name and unnamed > 1:
            name = f"_{number}"
            while name in names:
                name += "_"
        named.append(name)
    return named


def _is_header(cells: Sequence[str], bare: Sequence[str]) -> bool:
    """Return True if cells look like names of columns: the label does, or two cells do.

    >>> _is_header(["Premise", "Hypothesis", "Gold"], ["sentence1", "sentence2", "label"])
    True
    """
    names = [cell.casefold() for cell in cells]
    labels = [name for name, column in zip(names, bare) if column in LABEL_NAMES]
    return not LABEL_NAMES.isdisjoint(labels) or sum(name in COLUMN_NAMES for name in names) > 1


def spell_names(names: Iterable[str], required: Sequence[str]) -> list[str]:
    r"""Return names of columns with the spelling of required ones, or of their objects, that are equal in NFC.

    >>> spell_names(["\u1100\u1161", "b"], ["가.text"])
    ['가', 'b']
    """
    spelled = {compose(part): part for name in required for part in (name.split(".")[0], name)}
    return [spelled.get(compose(name), name) for name in names]


def spell_keys(item: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """Return a JSON object with the spelling of required keys that are equal in NFC."""
    return item if set(required) <= set(item) else dict(zip(spell_names(item, required), item.values()))


def _no_header(
    path: str | Path, line: int, first: Sequence[str], required: Sequence[str], bare: Sequence[str]
) -> BadRow:
    shown = ", ".join(repr(name if len(name) < 40 else f"{name[:39]}…") for name in first[:MOST_SHOWN])
    shown += f" and {len(first) - MOST_SHOWN:,} more" if len(first) > MOST_SHOWN else ""
    missing = ", ".join(repr(name) for name in required if name not in first)
    either = f", or {len(bare)} columns without names ({', '.join(bare)})" if bare else ""
    other = next((sign for sign in ("\t", ";", ",") if len(first) == 1 and sign in first[0]), None)
    remedy = {
        "\t": "the cells are separated by tabs: name the file .tsv",
        ";": "the cells are separated by semicolons: save it with commas",
        ",": "the cells are separated by commas: name the file .csv",
        None: "give the column names of this file (--text=…, --pair=…, --label=…), or add a header",
    }[other]
    near = _suggest([name for name in required if name not in first], first[:MOST_COMPARED])
    return BadRow(path, line, f"no column {missing} among {shown}, expected a header{either}", near or remedy)


def _suggest(missing: Sequence[str], names: Sequence[str]) -> str:
    """Return the remedy for columns that are spelt otherwise in the file, or "".

    >>> _suggest(["Review"], ["review", "stars"]), _suggest(["text"], ["review", "stars"])
    ("did you mean 'review'? (names have to be spelt as in the file)", '')
    """
    near = [name for wrong in missing if (name := nearest(wrong, names)) is not None]
    if not near or len(near) < len(missing):
        return ""
    return f"did you mean {' and '.join(map(repr, near))}? (names have to be spelt as in the file)"


def read_text_cell(record: Record, column: str, path: str | Path, empty: list[BadRow]) -> str:
    """Return the text of a cell; add the error about an empty one to `empty`."""
    value = record.cells[column]
    if not isinstance(value, str):
        remedy = "fill it in, or name a column of texts" if is_arrow(path) else 'write it in quotes: "…"'
        raise BadRow(path, record.line, f"{column} is {value!r}, expected a text", remedy)
    if not value.strip():
        empty.append(BadRow(path, record.line, f"the text in {column} is empty", f"fill it in, or {LEAVE_OUT}"))
    check_characters(value, path, record.line)
    return value


def _record(item: Any, path: str | Path, line: int, required: Sequence[str]) -> Record:
    """Return the cells of a JSON object; the column `labels.label` is the key `label` of the object `labels`."""
    if not isinstance(item, dict):
        raise BadRow(path, line, f"a JSON {_kind(item)}, expected an object {{…}}", "write one object per line")
    cells = dict(item)
    for name in required:
        value: Any = spell_keys(item, [name])
        for part in (name,) if name in value else name.split("."):
            value = spell_keys(value, [part]) if isinstance(value, dict) else value
            if not isinstance(value, dict) or part not in value:
                keys = ", ".join(map(repr, item)) or "nothing"
                remedy = _suggest([name], list(item)) or "add it, or give the name of another key"
                raise BadRow(path, line, f"no {name!r} among {keys}", remedy)
            value = value[part]
        cells[name] = value
    return Record(line, cells)


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return "empty list" if value == [] else names.get(type(value), "number")
