"""SemCor: texts with WordNet senses, one word per line, in columns separated by tabs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bert_elmo_jax.data.tasks.files import BadRow, check_characters, read_lines

KEY = re.compile(r"[1-5]:[0-9]{2}:[0-9]{2}:[^:;]*:[0-9]*")
COLUMNS = ("word", "lemma", "part of speech", "number of the sense", "key of the sense", "class of a name")
DOCUMENT = re.compile(r"# newdoc id = *(\S.*)")


@dataclass(frozen=True)
class Sense:
    """A word, or a multi-word expression (`primary_election`), with its senses: words `first` to `end` (excluded).

    `keys` are WordNet's sense keys, `lemma%1:04:01::`, usually one; `numbers` their ranks among the senses of the
    lemma, from 1. `item` is the lemma with its part of speech: noun, verb, adjective or adverb.
    """

    first: int
    end: int
    item: str
    keys: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class SenseSentence:
    """A sentence, the senses of its words, and the name of its document."""

    words: tuple[str, ...]
    senses: tuple[Sense, ...]
    document: str
    file: str
    line: int


def read_semcor(path: str | Path, encoding: str = "utf-8") -> list[SenseSentence]:
    r"""Read a SemCor file: word, lemma, part of speech, number and key of the sense, class of a name, ….

    `_` means no value, a blank line ends a sentence, `# newdoc id = …` begins a document. Underscores separate the
    words of an expression. Names (with a class, such as `person`) get no sense: SemCor only gives the one of the class.
    """
    lines = read_lines(path, encoding)
    sentences: list[SenseSentence] = []
    rows: list[tuple[int, list[str]]] = []
    document, width = "", 0
    for number, line in enumerate([*lines, ""], start=1):
        if not line.strip():
            if rows:
                sentences.append(_sentence(rows, document, str(path)))
            rows = []
        elif line.startswith("#") and "\t" not in line:
            if found := DOCUMENT.fullmatch(line.strip()):
                document = found[1]
        else:
            cells = line.split("\t")
            width = width or len(cells)
            if len(cells) != width or width < len(COLUMNS):
                expected = width if width >= len(COLUMNS) else f"{len(COLUMNS)} or more ({', '.join(COLUMNS)})"
                what = f"{len(cells)} column{'s'[: len(cells) != 1]} between tabs, expected {expected}"
                raise BadRow(path, number, what, "correct the line, or give a file in the columns of SemCor")
            check_characters(line, path, number)
            rows.append((number, cells))
    if not any(sentence.senses for sentence in sentences):
        raise BadRow(path, 1, "no word with a sense", "check that the file is complete, and in the columns of SemCor")
    return sentences


def _sentence(rows: Sequence[tuple[int, list[str]]], document: str, path: str) -> SenseSentence:
    words: list[str] = []
    senses: list[Sense] = []
    for line, cells in rows:
        word, lemma, _, numbers, keys, name = cells[: len(COLUMNS)]
        parts = [part for part in word.split("_") if part.strip()] or [word]
        if not word.strip():
            raise BadRow(path, line, "no word in the first column", "add the word, or remove the line")
        first = len(words)
        words += parts
        if keys != "_" and name == "_":
            senses.append(_sense(first, len(words), lemma, numbers, keys, path, line))
    return SenseSentence(tuple(words), tuple(senses), document, path, rows[0][0])


def _sense(first: int, end: int, lemma: str, numbers: str, keys: str, path: str, line: int) -> Sense:
    parts, places = keys.split(";"), numbers.split(";")
    if not all(KEY.fullmatch(part) for part in parts):
        raise BadRow(path, line, f"{keys!r}, expected a sense key such as 1:04:01::", "correct it, or write _")
    if lemma == "_":
        raise BadRow(path, line, f"the sense {keys!r} without a lemma", "write the lemma, or _ for the sense")
    if len(places) != len(parts) or not all(re.fullmatch(r"[0-9]{1,4}", place) for place in places):
        what = f"{numbers!r} for {keys!r}, expected one whole number per sense key"
        raise BadRow(path, line, what, "give each sense its number, separated by ;")
    # Adjectives (3) and satellite adjectives (5) share one inventory.
    item = f"{lemma}%{parts[0][0].replace('5', '3')}"
    return Sense(first, end, item, tuple(f"{lemma}%{part}" for part in parts), tuple(map(int, places)))
