"""Small files of texts, whole: a text a line, or a word a line in columns."""

from collections.abc import Iterator
from pathlib import Path

from bert_elmo_jax.data.corpus import decode_line, iterate_lines, line_number
from bert_elmo_jax.data.reading import BadInput, Reading, Source, Tally, describe, find_files, has_text


def read_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    r"""The lines of a file; a blank one is an error, because it has nothing to encode.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = file.write_text("강가의 은행\\nthe river bank\\n", encoding="utf-8")
    >>> read_lines(file)
    ['강가의 은행', 'the river bank']
    """
    source, lines = _lines(path, encoding)
    texts = []
    for offset, text in lines:
        if not text.strip():
            raise BadInput(source.path, line_number(source, offset), "a blank line", "a line is a text: remove it")
        texts.append(text)
    return texts


def read_conll(
    path: str | Path, column: int = 0, encoding: str = "utf-8", *, numbered: bool = False
) -> list[list[str]]:
    r"""The sentences of a file in columns (tabs or spaces), a blank line between them; comments (#) are left out.

    `numbered` lines are those of CoNLL-U: the first column counts, and ranges such as `3-4` and empty words such as
    `3.1` are left out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tags.conll"
    >>> _ = file.write_text("Seoul\\tB-LOC\\nwins\\tO\\n\\n서울\\tB-LOC\\n", encoding="utf-8")
    >>> read_conll(file)
    [['Seoul', 'wins'], ['서울']]
    """
    source, lines = _lines(path, encoding)
    sentences: list[list[str]] = [[]]
    for offset, text in lines:
        if not text.strip():
            sentences.append([])
            continue
        fields = text.split("\t") if "\t" in text else text.split()
        if text.startswith("#") and (numbered or "\t" not in text):
            continue
        if numbered and not fields[0].isdecimal():
            continue
        if len(fields) <= column or not fields[column].strip():
            number = line_number(source, offset)
            raise BadInput(source.path, number, f"no word in column {column}", "name the word's column with --column")
        sentences[-1].append(fields[column])
    kept = [sentence for sentence in sentences if sentence]
    if not kept:
        raise BadInput(source.path, None, "no sentence but comments", "check --input and --column")
    return kept


def _lines(path: str | Path, encoding: str) -> tuple[Source, Iterator[tuple[int, str]]]:
    # What a Windows editor leaves (a mark at the start, CR LF) is no harm in a list of texts.
    reading = Reading(encoding="utf-8-sig" if encoding == "utf-8" else encoding)
    if reading.wide:
        raise ValueError(f"encoding={encoding!r} is not read here; save the file as UTF-8")
    tally = Tally(reading)
    [name] = find_files([str(path)], tally)
    source = describe(name, name)
    has_text(source, tally)
    raw = iterate_lines(source, 0, tally)
    decoded = ((offset, decode_line(line.removesuffix(b"\r"), offset, source, tally)) for offset, line in raw)
    return source, ((offset, text) for offset, text in decoded if text is not None)
