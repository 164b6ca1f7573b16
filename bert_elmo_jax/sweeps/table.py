"""A sweep's table: means over seeds, tests against the reference row, and agreement with the paper's order."""

import functools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict
from scipy import stats

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import read_json
from bert_elmo_jax.runs.pretraining_budget import Budget, count_budget
from bert_elmo_jax.runs.start_run import sum_costs
from bert_elmo_jax.sweeps.definition import Cell, Sweep
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import Point
from bert_elmo_jax.train.metrics import read_metrics

LEVEL = 0.05
COSTS = ("parameters", "all parameters", "positions", "operations", "seconds")  # of a pretraining


@dataclass(frozen=True)
class Score:
    """The scores of a cell, one per seed; None for runs that are not done."""

    values: tuple[float | None, ...]
    why: str = ""  # scores are missing
    seeds: tuple[int, ...] = ()  # of the values; 0, 1, … by default

    @property
    def by_seed(self) -> dict[int, float]:
        """The scores by seed, without those that are missing."""
        seeds = self.seeds or range(len(self.values))
        return {seed: value for seed, value in zip(seeds, self.values, strict=True) if value is not None}

    @property
    def count(self) -> int:
        """The number of scores."""
        return len(self.by_seed)

    @property
    def mean(self) -> float | None:
        """The mean of the scores, if there are any."""
        return statistics.fmean(self.by_seed.values()) if self.count else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of two or more scores."""
        return statistics.stdev(self.by_seed.values()) if self.count > 1 else None


class Order(NamedTuple):
    """The order of a column's rows compared with the paper's."""

    tau: float | None  # Kendall's; None if all of our scores are equal
    against: tuple["Pair", ...]  # pairs in the other order here
    pairs: int  # of rows whose figures differ in the paper


class Pair(NamedTuple):
    """Two rows, the one that is better in the paper first, and the p-value of the difference between our scores."""

    better: str
    worse: str
    paper: float
    ours: float
    p: float | None


@dataclass(frozen=True)
class Table:
    """The scores of all cells of a sweep, by row and column."""

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
        """Return the p-value of a cell's difference to the reference row; None if it cannot be tested."""
        reference = self.sweep.paper.reference
        scored = {(row, column), (reference, column)} <= self.scores.keys()
        if row == reference or not scored:
            return None
        return compare_paired(self.scores[row, column].by_seed, self.scores[reference, column].by_seed)

    def gain(self, row: str, column: str) -> "Gain | None":
        """Return the gain of a row over the one above it, over the seeds that both have; None without both."""
        above = dict(zip(self.rows[1:], self.rows)).get(row)
        if above is None or not {(row, column), (above, column)} <= self.scores.keys():
            return None
        ours, theirs = (self.scores[name, column].by_seed for name in (row, above))
        return measure_gain([value - theirs[seed] for seed, value in ours.items() if seed in theirs])

    @property
    def constant(self) -> list[tuple[str, str]]:
        """Cells that differ from the reference row by exactly the same in all of several seeds."""
        differences = []
        for (row, column), score in self.scores.items():
            reference = self.scores.get((self.sweep.paper.reference, column))
            if reference is not None and row != self.sweep.paper.reference and self.p(row, column) is None:
                both = [value - reference.by_seed[n] for n, value in score.by_seed.items() if n in reference.by_seed]
                differences += [(row, column)] if len(both) > 1 and both[0] else []
        return differences

    def order(self, column: str) -> Order:
        """Return how the order of a column's rows agrees with the paper's."""
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
                p = compare_paired(better[2].by_seed, worse[2].by_seed)
                against.append(Pair(better[0], worse[0], better[1] - worse[1], difference, p))
        if not pairs or len({line[3] for line in both}) == 1:
            return Order(None, tuple(against), pairs)
        return Order(balance / pairs, tuple(against), pairs)


class Gain(NamedTuple):
    """The mean gain of a step, and half the width of its 95% interval; None if the seeds do not vary it."""

    mean: float
    half: float | None


def measure_gain(differences: Sequence[float]) -> Gain | None:
    """Return the mean of paired differences with Student's interval; None without differences.

    >>> gain = measure_gain([2.0, 3.0, 4.0])
    >>> gain.mean, round(gain.half, 2)
    (3.0, 2.48)
    >>> measure_gain([1.0]), measure_gain([2.0, 2.0, 2.0])
    (Gain(mean=1.0, half=None), Gain(mean=2.0, half=None))
    """
    if not differences:
        return None
    mean = statistics.fmean(differences)
    if not do_vary(differences):
        return Gain(mean, None)
    return Gain(mean, find_least_difference(len(differences)) * statistics.stdev(differences))


def do_vary(differences: Sequence[float]) -> bool:
    """Return True if there are two differences or more, and not all are equal: then chance can be judged.

    >>> do_vary([2.0, 2.5]), do_vary([2.0, 2.0]), do_vary([2.0])
    (True, False, False)
    """
    return len(differences) > 1 and max(differences) - min(differences) > 1e-9 * max(1.0, *map(abs, differences))


def compare_paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """Return the p-value of a two-sided paired t-test over common seeds; None if the differences do not vary.

    >>> theirs = {0: 89.0, 1: 90.5, 2: 90.0}
    >>> (
    ...     round(compare_paired({2: 92.0, 1: 91.0, 0: 90.0}, theirs), 4),
    ...     compare_paired({0: 90.0, 1: 91.5}, theirs),
    ... )
    (0.1181, None)
    """
    pairs = [(value, theirs[seed]) for seed, value in ours.items() if seed in theirs]
    if not do_vary([a - b for a, b in pairs]):
        return None
    return float(stats.ttest_rel(*zip(*pairs)).pvalue)


def find_least_difference(seeds: int) -> float:
    """Return how many standard deviations of the differences their mean must be from 0 to be significant.

    >>> (round(find_least_difference(3), 2), round(find_least_difference(5), 2))
    (2.48, 1.24)
    """
    return float(stats.t.ppf(1 - LEVEL / 2, seeds - 1)) / math.sqrt(seeds)


def read_table(sweep: Sweep, folders: Folders, lost: dict[str, str] | None = None) -> Table:
    """Return the table of all points that are done; `lost` says, by identity, why others never will be."""
    return Table(sweep, {(cell.row, cell.column): _score(cell, folders, lost or {}) for cell in sweep.cells})


def _score(cell: Cell, folders: Folders, lost: dict[str, str]) -> Score:
    values: list[float | None] = []
    why = dict.fromkeys(lost[point.identity] for point in cell.points if point.identity in lost)
    for point in cell.points:
        value = read_value(cell, point, folders)
        if isinstance(value, str):
            why[value] = None
        values.append(None if isinstance(value, str) else value)
    return Score(tuple(values), "; ".join(why), cell.seeds)


def read_value(cell: Cell, point: Point, folders: Folders) -> float | str | None:
    """Return the figure of one run, or a text that says why it has none, or None if the run is not done."""
    if not folders.is_done(point):
        return None
    run = folders.run(point)
    try:
        figures = read_figures(point, run)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{run} cannot be read ({error}): delete it, and the same command makes it again"
    name = cell.score or figures.get("score", "")
    if name in COSTS and point.program == "pretrain":
        figures |= read_pretraining_costs(run)
    if name not in figures:
        names = ", ".join(sorted(other for other in figures if other != "score"))
        return f"there is no figure {name!r}; there are {names}{did_you_mean(name, figures)}"
    value = figures[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        return f"{name} is {value}, no number"
    return (100.0 if cell.percent else 1.0) * value


def read_figures(point: Point, run: Path) -> dict[str, Any]:
    """Return all figures of a run that is done, by name.

    For a pretraining these are the last values of its metrics, and the scores of its translations; a cell may also show
    one of COSTS. For a task's run:
    the figures on dev; `score`, the name of the one that selects the model; `layer_shares/mix/input/0` and so on for
    mixed layers; and, if the encoder was adapted to the task's texts, `adapted/…` after and `adapted/before/…` before.
    """
    if point.program != "finetune":
        return _read_last_values(run)
    result = read_json(run / "result.json")
    figures = {**result["dev"], "score": result["score"]}
    for place, shares in result.get("layer_shares", {}).items():
        figures |= {f"layer_shares/{place}/{layer}": share for layer, share in enumerate(shares)}
    if (run / "adapted").is_dir():
        before = read_json(run / "adapted" / "before.json", default={})
        figures |= {f"adapted/before/{name}": value for name, value in before.items()}
        figures |= {f"adapted/{name}": value for name, value in _read_last_values(run / "adapted").items()}
    return figures


def read_pretraining_costs(run: Path) -> dict[str, float]:
    """Return COSTS of a pretraining that is done: millions, the operations in 10¹², and seconds of processor time."""
    budget = read_budget(run)
    scaled = (*(count / 1e6 for count in budget[:3]), budget.operations / 1e12)
    return dict(zip(COSTS, (*scaled, sum_costs(run, "processor"))))


@functools.lru_cache  # counting traces the model, and a table is written whenever a run ends
def read_budget(run: Path) -> Budget:
    """Return the budget of a pretraining that is done."""
    vocab_size = read_json(run / "model.json")["config"]["vocab_size"]
    return count_budget(ConfigDict(read_json(run / "run.json")), vocab_size)


def _read_last_values(run: Path) -> dict[str, Any]:
    last = {name: value for line in read_metrics(run) for name, value in line.items()}
    return last | read_json(run / "final.json", default={})


def list_lines(table: Table) -> Iterator[dict[str, object]]:
    """Yield one line of `table.csv` per cell, with all digits."""
    paper = table.sweep.paper
    for cell in table.sweep.cells:
        score = table.scores[cell.row, cell.column]
        yield {
            "row": cell.row, "column": cell.column, "measured": cell.of, "mean": score.mean,
            "standard deviation": score.deviation, "n": score.count, "seeds": len(cell.seeds),
            "p against the reference": table.p(cell.row, cell.column),
            **({"paper": paper.figure(cell.row, cell.column)} if paper.has_figures else {}),
            **(_gain_fields(table.gain(cell.row, cell.column)) if table.sweep.path else {}),
            "scores": " ".join("–" if value is None else repr(value) for value in score.values),
            "missing": score.why,
        }  # fmt: skip


def _gain_fields(gain: Gain | None) -> dict[str, float | None]:
    return {"gain": gain.mean if gain else None, "half of its 95% interval": gain.half if gain else None}
