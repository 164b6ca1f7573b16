"""Read files with one text per line, or with one word per line in columns."""

import contextlib
import dataclasses
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bert_elmo_jax.data.corpora.corpus import decode_line, iterate_lines
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Tally, find_files, has_text, plain_name
from bert_elmo_jax.data.corpora.table_texts import is_table, read_texts
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack

CONLL = (".conll", ".conllu", ".iob", ".bio")
DOCUMENT = "-DOCSTART-"  # marks the start of a document in CoNLL-2002 and -2003, with columns like a word
COMMENT = re.compile(r"#+\s+\S")  # words between tabs contain no space


def read_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a file; raise on a blank line, which has no text to encode."""
    return [text for _, text in each_line(path, encoding)]


def each_line(path: str | Path, encoding: str = "utf-8", *, skip_blank: bool = False) -> Iterator[tuple[int, str]]:
    r"""Yield (line number, text) for every line of a file; raise on blank lines, or skip them.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = file.write_text("강가의 은행\nthe river bank\n", encoding="utf-8")
    >>> next(each_line(file))
    (1, '강가의 은행')
    """
    for number, text in _lines(path, encoding):
        if text.strip():
            yield number, text
        elif not skip_blank:
            raise BadInput(str(path), number, "a blank line", "every line must be a text: remove it")


def each_cell(
    path: str | Path, column: str = "text", encoding: str = "utf-8", *, skip_blank: bool = False
) -> Iterator[tuple[int, str]]:
    r"""Yield (line or row, text) for every row of a table; raise on rows without text, or skip blank ones.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "texts.csv"
    >>> _ = file.write_text("review,stars\nthe river bank,5\n", encoding="utf-8")
    >>> list(each_cell(file, "review"))
    [(2, 'the river bank')]
    """
    for number, text in read_texts(
        find_file(path), Tally(Reading(text_field=column, encoding=encoding), prepares=False)
    ):
        if text.strip():
            yield number, text
        elif not skip_blank:
            raise BadInput(str(path), number, "a row without text", "fill it in, or remove it")


def each_sentence(
    path: str | Path, column: int = 0, encoding: str = "utf-8", *, numbered: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line of the first word, words) for every sentence of a file in columns, separated by tabs or spaces.

    A blank line ends a sentence. `numbered` reads CoNLL-U, where the first column counts the words; comments (#),
    ranges such as `3-4` and empty words such as `3.1` are left out. In other files `#` may be a word: a line at the
    head of a sentence is a comment if it starts with `#` and has another number of columns than the words, or a first
    column such as `# id` between tabs. The document marks of CoNLL-2003 (`-DOCSTART-`) are left out.
    """
    usual = _word_line(line for line in _lines(path, encoding) if not _is_blank(line)) or ""
    empty = True
    for blank, lines in groupby(_lines(path, encoding), _is_blank):
        block = [] if blank else list(lines)
        words: list[tuple[int, str]] = []
        for number, fields in _numbered(block) if numbered else _plain(block, _word_line(block) or usual):
            if len(fields) <= column or not fields[column].strip():
                remedy = "fix the line, or give the column of the words"
                raise BadInput(str(path), number, f"no word in column {column}", remedy)
            words.append((number, fields[column]))
        if words:
            empty = False
            yield words[0][0], [word for _, word in words]
    if empty:
        raise BadInput(str(path), None, "no sentence, only comments", "check the file and the column of the words")


def each_text(
    path: str | Path,
    layout: str = "auto",
    column: int | None = None,
    encoding: str = "utf-8",
    *,
    skip_blank: bool = False,
    text: str | None = None,
) -> Iterator[tuple[int, str | list[str]]]:
    """Yield (first line, text) for every text of a file.

    `layout` is "text" (one text per line), "conll" (words in columns), "table" (csv, JSON lines, Parquet, …) or "auto"
    (by the file's ending). `column` is the column of the words, by default the first, or the second in CoNLL-U; `text`
    is the column of the texts in a table, by default "text".
    """
    if layout == "table" or (layout == "auto" and is_table(str(path))):
        if column is not None:
            raise ValueError(f"column={column} does not apply to {path}, which is a table: name its column of texts")
        return each_cell(path, text or "text", encoding, skip_blank=skip_blank)
    if text is not None:
        raise ValueError(f"text={text!r} is the column of a table, and {path} is none: leave it out")
    if layout != "conll" and not (layout == "auto" and plain_name(path).endswith(CONLL)):
        if column is not None:
            raise ValueError(f"column={column} does not apply to {path}, which is read as one text per line: omit it")
        return each_line(path, encoding, skip_blank=skip_blank)
    numbered = plain_name(path).endswith(".conllu")
    return each_sentence(path, int(numbered) if column is None else column, encoding, numbered=numbered)


def find_file(path: str | Path) -> str:
    """Return the one file that matches a path or a glob."""
    names = find_files([str(path)], Tally(Reading(), prepares=False))
    if len(names) > 1:
        raise BadInput(str(path), None, f"matches {len(names)} files", "name one, or join them into one first")
    return names[0]


def _is_blank(line: tuple[int, str]) -> bool:
    return not line[1].strip()


def _word_line(lines: Iterable[tuple[int, str]]) -> str | None:
    """Return the first line that cannot be a comment; it shows the number of columns and their separator."""
    return next((text for _, text in lines if not text.startswith(("#", DOCUMENT))), None)


def _numbered(block: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """Return (line, columns) for the words of a sentence in CoNLL-U."""
    rows = [(number, text.split("\t") if "\t" in text else text.split()) for number, text in block]
    return [(number, fields) for number, fields in rows if fields[0].isdecimal()]


def _plain(block: Sequence[tuple[int, str]], like: str) -> list[tuple[int, list[str]]]:
    """Return (line, columns) for the words of a sentence; `like` is an example of a word's line."""
    tabs = "\t" in like
    columns = len(like.split("\t") if tabs else like.split())
    rows, opening = [], True
    for number, text in block:
        opening = opening and text.startswith("#")
        fields = text.split("\t") if tabs else text.split()
        comment = opening and (len(fields) != columns or (tabs and COMMENT.match(fields[0])))
        if not comment and fields[0] != DOCUMENT:
            rows.append((number, fields))
    return rows


def _lines(path: str | Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield (number, text) for every line."""
    reading = Reading(encoding=encoding)
    if reading.wide:
        raise ValueError(f"encoding={encoding!r} is not supported here; save the file as UTF-8")
    tally = Tally(reading, prepares=False)
    name = find_file(path)
    source = describe(name, name)
    with contextlib.ExitStack() as stack:
        if needs_unpacking(name, reading):
            unpack(name, plain := Path(stack.enter_context(tempfile.TemporaryDirectory()), "plain"), tally)
            source = dataclasses.replace(source, plain=str(plain), size=plain.stat().st_size)
        has_text(source, tally)
        for number, (offset, line) in enumerate(iterate_lines(source, 0, tally), start=1):
            text = decode_line(line, offset, source, tally)
            if text is not None:
                yield number, text
