"""Files of texts: a text a line, or a word a line in columns; read whole, or one text after the other."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bert_elmo_jax.data.corpora.corpus import decode_line, iterate_lines
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Tally, describe, find_files, has_text

CONLL = (".conll", ".conllu", ".iob", ".bio")
DOCUMENT = "-DOCSTART-"  # begins a document in CoNLL-2002 and -2003, with columns as if it were a word
COMMENT = re.compile(r"#+\s+\S")  # no word between tabs has a space in it


def read_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    r"""The lines of a file; a blank one is an error, because it has nothing to encode.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = file.write_text("강가의 은행\nthe river bank\n", encoding="utf-8")
    >>> read_lines(file)
    ['강가의 은행', 'the river bank']
    """
    return [text for _, text in each_line(path, encoding)]


def each_line(path: str | Path, encoding: str = "utf-8", *, skip_blank: bool = False) -> Iterator[tuple[int, str]]:
    r"""As `read_lines`, one after the other: (number of the line, text); or blank lines are passed over.

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
            raise BadInput(str(path), number, "a blank line", "a line is a text: remove it")


def read_conll(
    path: str | Path, column: int = 0, encoding: str = "utf-8", *, numbered: bool = False
) -> list[tuple[int, list[str]]]:
    r"""The sentences of a file in columns (tabs or spaces), a blank line between them: (line of its first word, words).

    `numbered` lines are those of CoNLL-U: the first column counts; comments (#), ranges such as `3-4` and empty words
    such as `3.1` are left out. In other files `#` may be a word: comments are only the lines with `#` at the head of a
    sentence that have another number of columns than its words, or between tabs a first column such as `# id`.
    The document marks of CoNLL-2003 (`-DOCSTART-`) are left out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tags.conll"
    >>> _ = file.write_text("# id = 1\nSeoul\tB-LOC\n#\tO\n1\tO\n\n서울\tB-LOC\n", encoding="utf-8")
    >>> read_conll(file)
    [(2, ['Seoul', '#', '1']), (6, ['서울'])]
    """
    return list(each_sentence(path, column, encoding, numbered=numbered))


def each_sentence(
    path: str | Path, column: int = 0, encoding: str = "utf-8", *, numbered: bool = False
) -> Iterator[tuple[int, list[str]]]:
    r"""As `read_conll`, one after the other.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tags.conll"
    >>> _ = file.write_text("Seoul\tB-LOC\n\n서울\tB-LOC\n", encoding="utf-8")
    >>> next(each_sentence(file))
    (1, ['Seoul'])
    """
    usual = _word_line(line for line in _lines(path, encoding) if not _is_blank(line)) or ""
    none = True
    for blank, lines in groupby(_lines(path, encoding), _is_blank):
        block = [] if blank else list(lines)
        words: list[tuple[int, str]] = []
        for number, fields in _numbered(block) if numbered else _plain(block, _word_line(block) or usual):
            if len(fields) <= column or not fields[column].strip():
                raise BadInput(
                    str(path),
                    number,
                    f"no word in column {column}",
                    "mend the line, or say which column the words are in",
                )
            words.append((number, fields[column]))
        if words:
            none = False
            yield words[0][0], [word for _, word in words]
    if none:
        raise BadInput(str(path), None, "no sentence but comments", "check the file, and which column the words are in")


def each_text(
    path: str | Path,
    layout: str = "auto",
    column: int | None = None,
    encoding: str = "utf-8",
    *,
    skip_blank: bool = False,
) -> Iterator[tuple[int, str | list[str]]]:
    r"""(line it begins on, text) of every text of a file: "text" a line, or words in columns ("conll").

    "auto" goes by the ending. The column of the word is the first, or in CoNLL-U the second, unless it is given. A
    blank line where a line is a text is an error, or passed over.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.conllu"
    >>> _ = file.write_text("1\t서울\tB-LOC\n", encoding="utf-8")
    >>> list(each_text(file))
    [(1, ['서울'])]
    """
    if not is_columns(path, layout):
        if column is not None:
            raise ValueError(f"column={column} says nothing of a text a line, as {path} is read: leave it out")
        return each_line(path, encoding, skip_blank=skip_blank)
    numbered = str(path).lower().endswith(".conllu")
    return each_sentence(path, int(numbered) if column is None else column, encoding, numbered=numbered)


def is_columns(path: str | Path, layout: str = "auto") -> bool:
    """Whether `each_text` reads a file as words in columns.

    >>> is_columns("train.CoNLL"), is_columns("train.txt"), is_columns("train.txt", "conll")
    (True, False, True)
    """
    return layout == "conll" or (layout == "auto" and str(path).lower().endswith(CONLL))


def find_file(path: str | Path) -> str:
    """The one file that a path, or a glob, names.

    >>> find_file("nowhere/*.txt")
    Traceback (most recent call last):
    bert_elmo_jax.data.corpora.reading.BadInput: nowhere/*.txt: no file matches; check the path
    """
    names = find_files([str(path)], Tally(Reading(), prepares=False))
    if len(names) > 1:
        raise BadInput(str(path), None, f"matches {len(names)} files", "name one, or join them to one first")
    return names[0]


def _is_blank(line: tuple[int, str]) -> bool:
    return not line[1].strip()


def _word_line(lines: Iterable[tuple[int, str]]) -> str | None:
    """The first line that can only be a word's: it shows how many columns there are, and what is between them."""
    return next((text for _, text in lines if not text.startswith(("#", DOCUMENT))), None)


def _numbered(block: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """(line, columns) of the words of a sentence in CoNLL-U."""
    rows = [(number, text.split("\t") if "\t" in text else text.split()) for number, text in block]
    return [(number, fields) for number, fields in rows if fields[0].isdecimal()]


def _plain(block: Sequence[tuple[int, str]], like: str) -> list[tuple[int, list[str]]]:
    """(line, columns) of the words of a sentence whose words' lines are like one that is given."""
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
    """(number, text) of every line."""
    reading = Reading(encoding=encoding)
    if reading.wide:
        raise ValueError(f"encoding={encoding!r} is not read here; save the file as UTF-8")
    tally = Tally(reading, prepares=False)
    name = find_file(path)
    source = describe(name, name)
    has_text(source, tally)
    for number, (offset, line) in enumerate(iterate_lines(source, 0, tally), start=1):
        text = decode_line(line, offset, source, tally)
        if text is not None:
            yield number, text
