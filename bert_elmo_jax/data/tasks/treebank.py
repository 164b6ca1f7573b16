"""Treebanks in CoNLL-U: parts of speech, features and heads of words, and labels for probes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bert_elmo_jax.data.tasks.files import BadRow, check_characters, read_lines
from bert_elmo_jax.data.tasks.tagged import conllu_cells

FEATURE = re.compile(r"([A-Za-z][A-Za-z0-9]*(?:\[[^\]=]+\])?)=([^=|]+)")


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
    sentences: list[ParsedSentence] = []
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*read_lines(path, encoding), ""], start=1):
        if not line.strip():
            if rows:
                sentences.append(_sentence(rows, str(path)))
            rows = []
        elif cells := conllu_cells(line, len(rows) + 1, str(path), number):
            if not cells[1].strip():
                raise BadRow(path, number, "no word in the second column", "add the word, or remove the line")
            check_characters(cells[1], path, number)
            rows.append((number, cells))
    if not sentences:
        raise BadRow(path, 1, "only comments, expected words", "check that the file is complete")
    return sentences


def _sentence(rows: Sequence[tuple[int, list[str]]], path: str) -> ParsedSentence:
    def column(n: int) -> tuple[str | None, ...]:
        return tuple(None if cells[n] == "_" else cells[n] for _, cells in rows)

    return ParsedSentence(
        tuple(cells[1] for _, cells in rows),
        column(3),
        tuple(_features(cells[5], path, number) for number, cells in rows),
        tuple(_head(cells, path, number, len(rows)) for number, cells in rows),
        column(7),
        path,
        tuple(number for number, _ in rows),
    )


def _features(cell: str, path: str, line: int) -> Mapping[str, str]:
    if cell == "_":
        return {}
    found = [FEATURE.fullmatch(part) for part in cell.split("|")]
    if None in found:
        what = f"{cell!r}, expected features such as Number=Sing|Person=3"
        raise BadRow(path, line, what, "correct them, or write _ for none")
    return {match[1]: match[2] for match in found if match}


def _head(cells: Sequence[str], path: str, line: int, size: int) -> int | None:
    if cells[6] == "_":
        return None
    head = int(cells[6]) if re.fullmatch(r"[0-9]{1,9}", cells[6]) else -1
    if not 0 <= head <= size or cells[6] == cells[0]:
        what = f"head {cells[6]!r} of word {cells[0]}, expected the number of another word, 0 to {size}"
        raise BadRow(path, line, what, "correct it, or write _ if it is unknown")
    return head


def labels_of(sentence: ParsedSentence, task: str) -> tuple[str | None, ...]:
    """Return the label of each word for a probing task, None for words without a label.

    The labels are the part of speech for `pos`, the distance to the head for `head_distance` (`<` for a head before the
    word, `>` after it), and else the feature called `task`, such as `Number`, `Tense`, `Person` or `Case`.
    """
    if task == "pos":
        return sentence.tags
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
