"""One line for each figure of an analysis, and the papers' own figures as lines of the same kind."""

import csv
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from bert_elmo_jax.files import open_atomically


@dataclass(frozen=True)
class Result:
    """A score: of which task, by which encoder, in which layer, of how many test cases.

    `layer` is empty for what has none (a baseline). `note` says what else there is to know.

    >>> Result("pos", "runs/elmo", "1", 0.973, 25094).percent
    '97.3'
    """

    task: str
    encoder: str
    layer: str
    score: float
    count: int | None = None
    note: str = ""

    @property
    def percent(self) -> str:
        """The score as people write it."""
        return f"{100 * self.score:.1f}"


_PTB = "as printed: Penn Treebank tags"
_WSD = "as printed: the test sets of Raganato et al. 2017"
PUBLISHED = (
    Result("pos", "biLM (Peters et al. 2018)", "1", 0.973, None, _PTB),
    Result("pos", "biLM (Peters et al. 2018)", "2", 0.968, None, _PTB),
    Result("pos", "CoVe (McCann et al. 2017)", "1", 0.933, None, _PTB),
    Result("pos", "CoVe (McCann et al. 2017)", "2", 0.928, None, _PTB),
    Result("senses", "first sense (Peters et al. 2018)", "", 0.659, None, _WSD),
    Result("senses", "biLM (Peters et al. 2018)", "1", 0.674, None, _WSD),
    Result("senses", "biLM (Peters et al. 2018)", "2", 0.690, None, _WSD),
    Result("senses", "CoVe (McCann et al. 2017)", "1", 0.594, None, _WSD),
    Result("senses", "CoVe (McCann et al. 2017)", "2", 0.647, None, _WSD),
)

NAMES = [field.name for field in fields(Result)]


def with_published(results: Sequence[Result]) -> list[Result]:
    """The results task by task, those that the papers print of a task behind it.

    >>> [result.encoder for result in with_published([Result("pos", "mine", "1", 0.9)])][:2]
    ['mine', 'biLM (Peters et al. 2018)']
    """
    tasks = dict.fromkeys(result.task for result in results)
    return [r for task in tasks for r in (*results, *PUBLISHED) if r.task == task]


def cells_of(results: Iterable[Result]) -> list[list[str]]:
    """The cells of a table, its names first.

    >>> cells_of([Result("pos", "mine", "1", 0.5, 4)])[1]
    ['pos', 'mine', '1', '50.0', '4', '']
    """
    body = [[r.task, r.encoder, r.layer, r.percent, "" if r.count is None else f"{r.count:,}", r.note] for r in results]
    return [["task", "encoder", "layer", "%", "of", "note"], *body]


def plain_table(cells: Sequence[Sequence[str]]) -> str:
    """A table for a terminal; columns are as wide as their longest cell.

    >>> print(plain_table([["task", "%"], ["배", "97.3"]]))
    task  %
    배    97.3
    """
    widths = [max(map(places, column)) for column in zip(*cells)]
    rows = ([cell + " " * (width - places(cell)) for cell, width in zip(row, widths)] for row in cells)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def places(text: str) -> int:
    """How many letters of the Latin alphabet are as wide as a text, in a terminal exactly: Hangul has two each.

    >>> places("배 a")
    4
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def write_csv(path: str | Path, results: Iterable[Result]) -> Path:
    """The results with all their digits; the file is there whole or not at all.

    >>> import tempfile
    >>> file = write_csv(Path(tempfile.mkdtemp()) / "table.csv", [Result("pos", "mine", "1", 0.5, 4)])
    >>> file.read_text(encoding="utf-8-sig").splitlines()[1]
    'pos,mine,1,0.5,4,'
    """
    return write_rows(path, [NAMES, *map(astuple, results)])


def write_rows(path: str | Path, rows: Iterable[Sequence[object]]) -> Path:
    r"""Rows, the names of their columns first; with the mark by which Excel knows that it is UTF-8.

    >>> import tempfile
    >>> file = write_rows(Path(tempfile.mkdtemp()) / "table.csv", [["word", "cosine"], ["배", 0.5]])
    >>> file.read_bytes()[:3], file.read_text(encoding="utf-8-sig").splitlines()[1]
    (b'\xef\xbb\xbf', '배,0.5')
    """
    with open_atomically(path, encoding="utf-8-sig") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return Path(path)
