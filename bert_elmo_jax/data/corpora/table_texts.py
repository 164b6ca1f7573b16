"""Write the texts of tables as plain text: JSON lines, csv, tsv, Parquet, Arrow, saved data sets.

Every row is a document. The file that is written is the .txt that a person would write with the same `--documents`, so
one corpus gives the same shards in every format.
"""

import csv
import dataclasses
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.arrow_files import is_arrow, open_arrow
from bert_elmo_jax.data.corpora.corpus import LINE_END, decode_line, iterate_lines, line_number, read_record
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.reading import BadInput, Source, Tally, plain_name
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import open_atomically

LARGEST_CELL = 2**31 - 1  # --max_line_mb limits a row; Python's own limit is 131,072 characters
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def is_table(path: str) -> bool:
    """Return True if the texts of a file are in a column, or in a field of its records.

    >>> is_table("reviews.csv.gz"), is_table("reviews.jsonl"), is_table("reviews.txt.gz")
    (True, True, False)
    """
    return is_arrow(path) or plain_name(path).endswith((".jsonl", ".ndjson", *SEPARATORS))


def write_texts(path: str, target: Path, tally: Tally) -> None:
    """Write the texts of a table as lines: with documents="line" one for each row, else with a blank line after each.

    A text's own line breaks end its sentences. They stay lines, or, in a line for each row, become carriage returns.
    """
    by_line = tally.reading.documents == "line"
    limit = int(tally.reading.max_line_mb * (1 << 20))
    written = False
    with open_atomically(target) as out:
        for row, text in read_texts(path, tally, target.parent):
            lines = [line for line in LINE_END.split(text) if line.strip()]
            data = ("\r" if by_line else "\n").join(lines).encode()
            if len(data) > limit:
                problem = f"a text of more than {tally.reading.max_line_mb:g} MB"
                tally.bad(path, partial(int, row), problem, "break it into texts", flag="raise --max_line_mb")
            elif data or by_line:  # an empty row is a blank line of such a file
                out.write(data + b"\n" if by_line or not written else b"\n" + data + b"\n")
                written = True


def read_texts(path: str, tally: Tally, work: Path | None = None) -> Iterator[tuple[int, str]]:
    """Yield (row or line, text) for the texts of a table; bad rows raise, or are counted and left out.

    A compressed table is unpacked to a temporary folder, in `work` if it is given.
    """
    if is_arrow(path):
        yield from _arrow_texts(path, tally)
        return
    with tempfile.TemporaryDirectory(suffix=".partial", dir=work) as folder:
        source = describe(path, path)
        if needs_unpacking(path, tally.reading):
            unpack(path, plain := Path(folder, "plain"), tally)
            source = dataclasses.replace(source, plain=str(plain), size=plain.stat().st_size)
        if source.is_json:
            for number, (offset, line) in enumerate(iterate_lines(source, 0, tally), start=1):
                if (text := read_record(line, offset, source, tally)) is not None:
                    yield number, text
        else:
            yield from _cells(source, tally)


def _arrow_texts(path: str, tally: Tally) -> Iterator[tuple[int, str]]:
    table, column = open_arrow(path), tally.reading.text_field
    if column not in table.names:
        listed, near = ", ".join(map(repr, table.names)), did_you_mean(column, table.names)
        raise BadInput(path, None, f"no column {column!r} among {listed}", f"name one with {tally.column_flag}{near}")
    table.check_texts(column)
    for number, row in enumerate(table.rows([column]), start=1):
        text = row[column]
        if text is None:
            remedy = "fill it in, or remove the row"
            tally.bad(path, partial(int, number), f"no text in {column!r}", remedy, flag="pass --on_bad=skip")
        elif "\0" in text:
            tally.bad(path, partial(int, number), "a NUL character", "remove it", flag="pass --on_bad=skip")
        else:
            yield number, text


def _cells(source: Source, tally: Tally) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for the rows of a csv file, or of a tsv file, whose cells have no quotes."""
    separator = SEPARATORS[Path(plain_name(source.path)).suffix]
    limit, since_row, first_line = int(tally.reading.max_line_mb * (1 << 20)), 0, 1

    def lines() -> Iterator[str]:
        nonlocal since_row
        for offset, line in iterate_lines(source, 0, tally):
            since_row += len(line or b"") + 1
            if since_row > limit:
                problem = f"a row of more than {tally.reading.max_line_mb:g} MB from here"
                remedy = "look for a quote that is not closed, or raise --max_line_mb"
                raise BadInput(source.path, line_number(source, offset), problem, remedy)
            one_line = line is not None and len(line) == source.size  # of rows that end in carriage returns
            text = decode_line(line, offset, source, tally, breaks=one_line or separator == ",")
            if text is not None:
                yield from (f"{part}\n" for part in (text.split("\r") if one_line else [text]))

    dialect: dict[str, Any] = {"quoting": csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE}
    csv.field_size_limit(LARGEST_CELL)
    rows = csv.reader(lines(), delimiter=separator, strict=True, **dialect)
    names: list[str] = []
    column = tally.reading.text_field
    try:
        for cells in rows:
            number, first_line, since_row = first_line, rows.line_num + 1, 0
            if not cells:  # a blank line
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                if column not in names:
                    listed, near = ", ".join(map(repr, names)), did_you_mean(column, names)
                    problem = f"no column {column!r} among {listed}"
                    raise BadInput(source.path, number, problem, f"name one with {tally.column_flag}{near}")
                if names.count(column) > 1:
                    raise BadInput(source.path, number, f"two columns called {column!r}", "rename one of them")
            elif len(cells) != len(names):
                problem, remedy = f"{len(cells)} columns, expected {len(names)}", "correct the row"
                tally.bad(source.path, partial(int, number), problem, remedy, flag="pass --on_bad=skip")
            else:
                yield number, cells[names.index(column)]
    except csv.Error as error:
        reason, remedy = explain_csv_error(error)
        raise BadInput(source.path, rows.line_num, f"invalid csv ({reason})", remedy) from None


def explain_csv_error(error: csv.Error) -> tuple[str, str]:
    """Return what is wrong with a csv, and the remedy.

    >>> explain_csv_error(csv.Error("new-line character seen in unquoted field - do you need …"))
    ('a carriage return inside a cell', 'quote the cell, or save the file with LF as line ends')
    """
    if str(error).startswith("new-line character"):
        return "a carriage return inside a cell", "quote the cell, or save the file with LF as line ends"
    remedy = 'look for a quote that is not closed; inside a cell, a quote is written twice: "so ""good"" a film"'
    return str(error), remedy
