"""Annotated texts for analysis: treebanks in CoNLL-U, and SemCor's words with their WordNet senses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.tasks.files import BadRow, check_characters, read_lines
from bert_elmo_jax.data.tasks.tagged import conllu_cells

_KEY = re.compile(r"[1-5]:[0-9]{2}:[0-9]{2}:[^:;]*:[0-9]*")
_COLUMNS = ("word", "lemma", "part of speech", "number of the sense", "key of the sense", "class of a name")
_DOCUMENT = re.compile(r"# newdoc id = *(\S.*)")
_FEATURE = re.compile(r"([A-Za-z][A-Za-z0-9]*(?:\[[^\]=]+\])?)=([^=|]+)")


@dataclass(frozen=True)
class ParsedSentence:
    """Words with their parts of speech, features, heads (counted from 1, 0 for the root) and relations.

    Unspecified values (`_`) are None, or an empty mapping.
    """

    words: tuple[str, ...]
    tags: tuple[str | None, ...]
    features: tuple[Mapping[str, str], ...]
    heads: tuple[int | None, ...]
    relations: tuple[str | None, ...]
    file: str
    lines: tuple[int, ...]

    @property
    def line(self) -> int:
        """The line of the first word."""
        return self.lines[0]


def read_treebank(path: str | Path, encoding: str = "utf-8") -> list[ParsedSentence]:
    """Read the sentences of a CoNLL-U file; ranges (3-4) and empty words (3.1) are skipped."""
    sentences = []
    for block in _blocks(path, encoding):
        rows: list[tuple[int, list[str]]] = []
        for number, line in block:
            if cells := conllu_cells(line, len(rows) + 1, str(path), number):
                if not cells[1].strip():
                    raise BadRow(path, number, "no word in the second column", "add the word, or remove the line")
                check_characters(cells[1], path, number)
                rows.append((number, cells))
        if rows:
            sentences.append(_sentence(rows, str(path)))
    if not sentences:
        raise BadRow(path, 1, "only comments, expected words", "check that the file is complete")
    return sentences


def _blocks(path: str | Path, encoding: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the numbered lines of each sentence: blank lines separate them."""
    rows = enumerate(read_lines(local_copy(str(path)), encoding), start=1)
    for blank, lines in groupby(rows, lambda line: not line[1].strip()):
        if not blank:
            yield list(lines)


def _sentence(rows: Sequence[tuple[int, list[str]]], path: str) -> ParsedSentence:
    def column(n: int) -> tuple[str | None, ...]:
        return tuple(None if cells[n] == "_" else cells[n] for _, cells in rows)

    words, lines = tuple(cells[1] for _, cells in rows), tuple(number for number, _ in rows)
    features = tuple(_features(cells[5], path, number) for number, cells in rows)
    heads = tuple(_head(cells, path, number, len(rows)) for number, cells in rows)
    return ParsedSentence(words, column(3), features, heads, column(7), path, lines)


def _features(cell: str, path: str, line: int) -> Mapping[str, str]:
    if cell == "_":
        return {}
    matches = [_FEATURE.fullmatch(part) for part in cell.split("|")]
    if None in matches:
        problem = f"{cell!r}, expected features such as Number=Sing|Person=3"
        raise BadRow(path, line, problem, "correct them, or write _ for none")
    return {match[1]: match[2] for match in matches if match}


def _head(cells: Sequence[str], path: str, line: int, size: int) -> int | None:
    if cells[6] == "_":
        return None
    head = int(cells[6]) if re.fullmatch(r"[0-9]{1,9}", cells[6]) else -1
    if not 0 <= head <= size or cells[6] == cells[0]:
        problem = f"head {cells[6]!r} of word {cells[0]}, expected the number of another word, 0 to {size}"
        raise BadRow(path, line, problem, "correct it, or write _ if it is unknown")
    return head


def labels_of(sentence: ParsedSentence, task: str) -> tuple[str | None, ...]:
    """Return the label of each word for a probing task, None for words without a label.

    The labels are the part of speech for `pos`, the dependency label for `relation`, the distance to the head for
    `head_distance` (`<` for a head before the word, `>` after it), and else the feature called `task`, such as
    `Number`, `Tense`, `Person` or `Case`.
    """
    if task == "pos":
        return sentence.tags
    if task == "relation":
        return sentence.relations
    if task == "head_distance":
        return tuple(None if head is None else _distance(n + 1, head) for n, head in enumerate(sentence.heads))
    return tuple(features.get(task) for features in sentence.features)


def _distance(word: int, head: int) -> str:
    """Return the label of the distance to a head: exact if near, a range if far."""
    if head == 0:
        return "root"
    far = abs(head - word)
    name = str(far) if far < 4 else "4-5" if far < 6 else "6-9" if far < 10 else "10+"
    return f"{'<' if head < word else '>'}{name}"


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
    sentences: list[SenseSentence] = []
    document, width = "", 0
    for block in _blocks(path, encoding):
        rows: list[tuple[int, list[str]]] = []
        for number, line in block:
            if line.startswith("#") and "\t" not in line:
                if match := _DOCUMENT.fullmatch(line.strip()):
                    document = match[1]
                continue
            cells = line.split("\t")
            width = width or len(cells)
            if len(cells) != width or width < len(_COLUMNS):
                expected = width if width >= len(_COLUMNS) else f"{len(_COLUMNS)} or more ({', '.join(_COLUMNS)})"
                problem = f"{len(cells)} column{'s'[: len(cells) != 1]} between tabs, expected {expected}"
                raise BadRow(path, number, problem, "correct the line, or give a file in the columns of SemCor")
            check_characters(line, path, number)
            rows.append((number, cells))
        if rows:
            sentences.append(_sense_sentence(rows, document, str(path)))
    if not any(sentence.senses for sentence in sentences):
        raise BadRow(path, 1, "no word with a sense", "check that the file is complete, and in the columns of SemCor")
    return sentences


def _sense_sentence(rows: Sequence[tuple[int, list[str]]], document: str, path: str) -> SenseSentence:
    words: list[str] = []
    senses: list[Sense] = []
    for line, cells in rows:
        bad = partial(BadRow, path, line)
        word, lemma, _, numbers, keys, name = cells[: len(_COLUMNS)]
        if not word.strip():
            raise bad("no word in the first column", "add the word, or remove the line")
        first = len(words)
        words += [part for part in word.split("_") if part.strip()] or [word]
        if keys == "_" or name != "_":
            continue
        parts, places = keys.split(";"), numbers.split(";")
        if not all(_KEY.fullmatch(part) for part in parts):
            raise bad(f"{keys!r}, expected a sense key such as 1:04:01::", "correct it, or write _")
        if lemma == "_":
            raise bad(f"the sense {keys!r} without a lemma", "write the lemma, or _ for the sense")
        if len(places) != len(parts) or not all(re.fullmatch(r"[0-9]{1,4}", place) for place in places):
            problem = f"{numbers!r} for {keys!r}, expected one whole number per sense key"
            raise bad(problem, "give each sense its number, separated by ;")
        # Adjectives (3) and satellite adjectives (5) share one inventory.
        item, names = f"{lemma}%{parts[0][0].replace('5', '3')}", tuple(f"{lemma}%{part}" for part in parts)
        senses.append(Sense(first, len(words), item, names, tuple(map(int, places))))
    return SenseSentence(tuple(words), tuple(senses), document, path, rows[0][0])
