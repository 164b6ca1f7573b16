"""Scores of an analysis and of the papers, as table cells and CSV."""

import csv
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from bert_elmo_jax.files import guard_formula, open_atomically
from bert_elmo_jax.report.language import Phrase


@dataclass(frozen=True)
class Result:
    """One score: task, encoder, layer (empty for a baseline without one), and `count` test cases."""

    task: str
    encoder: str
    layer: str
    score: float
    count: int | None = None
    note: str = ""

    @property
    def percent(self) -> str:
        """The score in per cent, with one decimal."""
        return f"{100 * self.score:.1f}"

    def __repr__(self) -> str:
        return f"{self.task}, {self.encoder}{f', layer {self.layer}' if self.layer else ''}: {self.percent} %"


SENSES = Phrase("senses")
_PTB = Phrase("as printed: Penn Treebank tags")
_WSD = Phrase("as printed: the test sets of Raganato et al. 2017")
PUBLISHED = (
    Result("pos", "biLM (Peters et al. 2018)", "1", 0.973, None, _PTB),
    Result("pos", "biLM (Peters et al. 2018)", "2", 0.968, None, _PTB),
    Result("pos", "CoVe (McCann et al. 2017)", "1", 0.933, None, _PTB),
    Result("pos", "CoVe (McCann et al. 2017)", "2", 0.928, None, _PTB),
    Result(SENSES, Phrase("first sense (Peters et al. 2018)"), "", 0.659, None, _WSD),
    Result(SENSES, "biLM (Peters et al. 2018)", "1", 0.674, None, _WSD),
    Result(SENSES, "biLM (Peters et al. 2018)", "2", 0.690, None, _WSD),
    Result(SENSES, "CoVe (McCann et al. 2017)", "1", 0.594, None, _WSD),
    Result(SENSES, "CoVe (McCann et al. 2017)", "2", 0.647, None, _WSD),
)


def add_published(results: Sequence[Result]) -> list[Result]:
    """Return the results task by task, each task followed by the scores that the papers print for it."""
    tasks = dict.fromkeys(result.task for result in results)
    return [r for task in tasks for r in (*results, *PUBLISHED) if r.task == task]


def make_cells(results: Iterable[Result]) -> list[list[str]]:
    """Return the cells of a table; the first row is the column names."""
    body = [[r.task, r.encoder, r.layer, r.percent, "" if r.count is None else f"{r.count:,}", r.note] for r in results]
    return [[Phrase("task"), Phrase("encoder"), Phrase("layer"), "%", Phrase("of"), Phrase("note")], *body]


def format_table(cells: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal; a column is as wide as its longest cell.

    >>> print(format_table([["task", "%"], ["배", "97.3"]]))
    task  %
    배    97.3
    """
    widths = [max(map(count_columns, column)) for column in zip(*cells)]
    rows = ([cell + " " * (width - count_columns(cell)) for cell, width in zip(row, widths)] for row in cells)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def count_columns(text: str) -> int:
    """Return the width of a text in terminal columns: two for each Hangul syllable, one for each Latin letter.

    >>> count_columns("배 a")
    4
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def write_results(path: str | Path, results: Iterable[Result], guarded: bool = False) -> Path:
    """Write results as CSV, with all digits."""
    return write_rows(path, [[field.name for field in fields(Result)], *map(astuple, results)], guarded)


def write_rows(path: str | Path, rows: Iterable[Sequence[object]], guarded: bool = False) -> Path:
    """Write rows as CSV, the column names first, with the byte-order mark that Excel needs to recognise UTF-8.

    `guarded` texts are no formulas.
    """
    if guarded:
        rows = [[guard_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    with open_atomically(path, encoding="utf-8-sig") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return Path(path)
