"""A sweep's table: means over the seeds, what distinguishes a row from the reference, and the order of the paper."""

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from scipy import stats

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.sweeps.definition import Cell, Sweep
from bert_elmo_jax.sweeps.points import Places, Point
from bert_elmo_jax.train.metrics import read_metrics

LEVEL = 0.05


@dataclass(frozen=True)
class Score:
    """What stands in a cell: the score of each seed that is done, None for those that are not.

    >>> cell = Score((80.0, 82.0, None))
    >>> cell.mean, round(cell.deviation, 3), cell.count
    (81.0, 1.414, 2)
    """

    values: tuple[float | None, ...]
    why: str = ""  # what is missing is missing for
    seeds: tuple[int, ...] = ()  # whose values they are; none given: one after the other

    @property
    def known(self) -> list[float]:
        """The scores that there are."""
        return list(self.by_seed.values())

    @property
    def by_seed(self) -> dict[int, float]:
        """The scores that there are, by their seeds."""
        seeds = self.seeds or range(len(self.values))
        return {seed: value for seed, value in zip(seeds, self.values, strict=True) if value is not None}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.known)

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return statistics.fmean(self.known) if self.known else None

    @property
    def deviation(self) -> float | None:
        """Their standard deviation; of one there is none."""
        return statistics.stdev(self.known) if self.count > 1 else None


class Order(NamedTuple):
    """How a column's rows lie beside the paper's: Kendall's τ, and the pairs that lie the other way round.

    Pairs are those that the paper tells apart. τ is by how much more of them agree than do not, of all of them; None
    where none of ours is told from another.
    """

    tau: float | None
    against: tuple["Pair", ...]
    pairs: int


class Pair(NamedTuple):
    """Two rows, the first of them the better one in the paper; p is that of our seeds' difference."""

    better: str
    worse: str
    paper: float
    ours: float
    p: float | None


@dataclass(frozen=True)
class Table:
    """The scores of all cells of a sweep."""

    sweep: Sweep
    scores: dict[tuple[str, str], Score]

    @property
    def rows(self) -> list[str]:
        """The rows that have cells, in the paper's order."""
        return [row for row in self.sweep.paper.rows if any(r == row for r, _ in self.scores)]

    @property
    def columns(self) -> list[str]:
        """The columns that have cells, in the paper's order."""
        return [column for column in self.sweep.paper.columns if any(c == column for _, c in self.scores)]

    def p(self, row: str, column: str) -> float | None:
        """How likely so large a difference to the reference row is by chance; None where nothing can be said."""
        reference = self.sweep.paper.reference
        there = {(row, column), (reference, column)} <= self.scores.keys()
        if row == reference or not there:
            return None
        return paired(self.scores[row, column].by_seed, self.scores[reference, column].by_seed)

    @property
    def constant(self) -> list[tuple[str, str]]:
        """The cells of several seeds that lie apart from the reference row by the same in all of them."""
        found = []
        for (row, column), score in self.scores.items():
            reference = self.scores.get((self.sweep.paper.reference, column))
            if reference is not None and row != self.sweep.paper.reference and self.p(row, column) is None:
                both = [value - reference.by_seed[n] for n, value in score.by_seed.items() if n in reference.by_seed]
                found += [(row, column)] if len(both) > 1 and both[0] else []
        return found

    def order(self, column: str) -> Order:
        """The rows of a column beside the paper's."""
        paper = self.sweep.paper
        both: list[tuple[str, float, Score, float]] = []
        for row in self.rows:
            theirs, ours = paper.figure(row, column), self.scores.get((row, column))
            if theirs is not None and ours is not None and ours.mean is not None:
                both.append((row, theirs, ours, ours.mean))
        pairs, balance, against = 0, 0, []
        for a, b in combinations(both, 2):
            if a[1] == b[1]:
                continue
            better, worse = (a, b) if a[1] > b[1] else (b, a)
            pairs += 1
            difference = better[3] - worse[3]
            balance += (difference > 0) - (difference < 0)
            if difference <= 0:
                p = paired(better[2].by_seed, worse[2].by_seed)
                against.append(Pair(better[0], worse[0], better[1] - worse[1], difference, p))
        if not pairs or len({line[3] for line in both}) == 1:
            return Order(None, tuple(against), pairs)
        return Order(balance / pairs, tuple(against), pairs)


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The two-sided paired t-test over the seeds that both have; None where the differences do not vary.

    >>> theirs = {0: 89.0, 1: 90.5, 2: 90.0}
    >>> round(paired({2: 92.0, 1: 91.0, 0: 90.0}, theirs), 4), paired({0: 90.0, 1: 91.5}, theirs)
    (0.1181, None)
    """
    pairs = [(value, theirs[seed]) for seed, value in ours.items() if seed in theirs]
    differences = [a - b for a, b in pairs]
    if len(pairs) < 2 or max(differences) - min(differences) <= 1e-9 * max(1.0, *map(abs, differences)):
        return None
    return float(stats.ttest_rel(*zip(*pairs)).pvalue)


def least_difference(seeds: int) -> float:
    """How many standard deviations of the differences their mean must be away from 0, to be told from chance.

    >>> round(least_difference(3), 2), round(least_difference(5), 2)
    (2.48, 1.24)
    """
    return float(stats.t.ppf(1 - LEVEL / 2, seeds - 1)) / math.sqrt(seeds)


def read_table(sweep: Sweep, places: Places, lost: dict[str, str] | None = None) -> Table:
    """The table of what is done; `lost` says of points why they never will be, by identity."""
    return Table(sweep, {(cell.row, cell.column): _score(cell, places, lost or {}) for cell in sweep.cells})


def _score(cell: Cell, places: Places, lost: dict[str, str]) -> Score:
    values: list[float | None] = []
    why = dict.fromkeys(lost[point.identity] for point in cell.points if point.identity in lost)
    for point in cell.points:
        value = value_of(cell, point, places)
        if isinstance(value, str):
            why[value] = None
        values.append(None if isinstance(value, str) else value)
    return Score(tuple(values), "; ".join(why), cell.seeds)


def value_of(cell: Cell, point: Point, places: Places) -> float | str | None:
    """The figure of one run, or why it has none; None of one that is not done.

    Whatever is wrong with a figure, the other cells and the runs that are still to come have nothing to do with it.
    """
    if not places.is_done(point):
        return None
    run = places.run(point)
    try:
        figures = figures_of(point, run)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{run} cannot be read ({error}): delete it, and the same command makes it again"
    name = cell.score or figures["score"]
    if name not in figures:
        there = ", ".join(sorted(other for other in figures if other != "score"))
        return f"there is no figure {name!r}; there are {there}{did_you_mean(name, figures)}"
    value = figures[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        return f"{name} is {value}, no number"
    return (100.0 if cell.percent else 1.0) * value


def figures_of(point: Point, run: Path) -> dict[str, Any]:
    """All figures of a run that is done, by name.

    Of a task's run those of its dev data, `score` (the name of the one that counts), `layer_shares/mix/input/0` and so
    on where it mixes layers, and `adapted/…` where its encoder has read the task's texts first: those of that reading,
    `adapted/before/…` from before it. Of a pretraining the last ones of its metrics.
    """
    if point.program != "finetune":
        return {name: value for line in read_metrics(run) for name, value in line.items()}  # the last ones remain
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    found = {**result["dev"], "score": result["score"]}
    for place, shares in result.get("layer_shares", {}).items():
        found |= {f"layer_shares/{place}/{layer}": share for layer, share in enumerate(shares)}
    if (run / "adapted").is_dir():
        before = json.loads((run / "adapted" / "before.json").read_text(encoding="utf-8"))
        after = {name: value for line in read_metrics(run / "adapted") for name, value in line.items()}
        found |= {f"adapted/before/{name}": value for name, value in before.items()}
        found |= {f"adapted/{name}": value for name, value in after.items()}
    return found


def lines_of(table: Table) -> Iterator[dict[str, object]]:
    """A line of `table.csv` for each cell, with all digits."""
    for cell in table.sweep.cells:
        score = table.scores[cell.row, cell.column]
        yield {
            "row": cell.row, "column": cell.column, "measured": cell.of, "mean": score.mean,
            "standard deviation": score.deviation, "n": score.count, "seeds": len(cell.seeds),
            "p against the reference": table.p(cell.row, cell.column),
            "paper": table.sweep.paper.figure(cell.row, cell.column),
            "scores": " ".join("–" if value is None else repr(value) for value in score.values),
            "missing": score.why,
        }  # fmt: skip
