"""Small files of texts, whole: a text a line, or a word a line in columns."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bert_elmo_jax.data.corpus import decode_line, iterate_lines
from bert_elmo_jax.data.reading import BadInput, Reading, Tally, describe, find_files, has_text

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
    texts = []
    for number, text in _lines(path, encoding):
        if not text.strip():
            raise BadInput(str(path), number, "a blank line", "a line is a text: remove it")
        texts.append(text)
    return texts


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
    blocks = [list(lines) for blank, lines in groupby(_lines(path, encoding), _is_blank) if not blank]
    usual = _word_line([line for block in blocks for line in block]) or ""
    sentences = []
    for block in blocks:
        words: list[tuple[int, str]] = []
        for number, fields in _numbered(block) if numbered else _plain(block, _word_line(block) or usual):
            if len(fields) <= column or not fields[column].strip():
                raise BadInput(str(path), number, f"no word in column {column}", "name the word's column with --column")
            words.append((number, fields[column]))
        if words:
            sentences.append((words[0][0], [word for _, word in words]))
    if not sentences:
        raise BadInput(str(path), None, "no sentence but comments", "check --input and --column")
    return sentences


def _is_blank(line: tuple[int, str]) -> bool:
    return not line[1].strip()


def _word_line(lines: Sequence[tuple[int, str]]) -> str | None:
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
    # What a Windows editor leaves (a mark at the start, CR LF) is no harm in a list of texts.
    reading = Reading(encoding="utf-8-sig" if encoding == "utf-8" else encoding)
    if reading.wide:
        raise ValueError(f"encoding={encoding!r} is not read here; save the file as UTF-8")
    tally = Tally(reading)
    [name] = find_files([str(path)], tally)
    source = describe(name, name)
    has_text(source, tally)
    for number, (offset, line) in enumerate(iterate_lines(source, 0, tally), start=1):
        text = decode_line(line and line.removesuffix(b"\r"), offset, source, tally)
        if text is not None:
            yield number, text
