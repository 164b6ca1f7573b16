"""A sweep as its file defines it: runs, the cells of the table that they fill, and the paper's figures."""

import contextlib
import runpy
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bert_elmo_jax.data.tasks.task import QUESTIONS
from bert_elmo_jax.did_you_mean import did_you_mean, nearest
from bert_elmo_jax.programs import SWEEPS, find_file, module_name
from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.sweeps.points import Point, sort_by_needs

SCALES = ("toy", "laptop", "one_gpu", "paper")
Means = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Paper:
    """A published table: for each row one figure per column, or None.

    >>> Paper("Devlin et al. 2018, table 8", ("MNLI",), {"80/10/10": (84.2,)}, "80/10/10").figure("80/10/10", "MNLI")
    84.2
    """

    source: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    reference: str  # the row that the others are compared with

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"two columns of one name: {', '.join(self.columns)}")
        for row, figures in self.rows.items():
            numbers = isinstance(figures, tuple) and all(f is None or isinstance(f, int | float) for f in figures)
            if not numbers or len(figures) != len(self.columns):
                such = f"{len(self.columns)} columns, such as {(None,) * len(self.columns)}"
                expected = f"expected a number or None for each of the {such}"
                raise ValueError(f"row {row!r} has the figures {figures!r}, {expected}")
        if self.reference not in self.rows:
            raise ValueError(f"the reference row {self.reference!r} is none of {', '.join(self.rows)}")

    @classmethod
    def without_figures(
        cls, columns: Iterable[str], rows: Iterable[str], reference: str, source: str = "none"
    ) -> "Paper":
        """Return a table without published figures."""
        names = tuple(columns)
        return cls(source, names, {row: (None,) * len(names) for row in rows}, reference)

    def figure(self, row: str, column: str) -> float | None:
        """Return the published figure of a cell."""
        return self.rows[row][self.columns.index(column)]

    @property
    def has_figures(self) -> bool:
        """Return False for a table that is not of a paper."""
        return any(figure is not None for figures in self.rows.values() for figure in figures)


@dataclass(frozen=True)
class Cell:
    """One cell of the table: its runs, one per seed, and the figure of theirs that it shows."""

    row: str
    column: str
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    of: str  # the measurement, for readers
    score: str = ""  # the figure; by default the one that selects the best model
    percent: bool = True


@dataclass(frozen=True)
class Sweep:
    """A sweep at one scale; `scale` is empty if its file has no scales."""

    name: str
    scale: str
    about: str
    paper: Paper
    cells: tuple[Cell, ...]
    plot: Callable[[Means], Figure] | None = None
    notes: str = ""
    path: bool = False  # each row changes the one above it, so the table shows the gain of each step
    points: tuple[Point, ...] = field(init=False)

    def __post_init__(self) -> None:
        # One seed of every cell before the next seed: so the whole table is there early, and the other seeds find the
        # cell's functions compiled.
        most = max(len(cell.points) for cell in self.cells)
        by_seed = [point for n in range(most) for cell in self.cells for point in cell.points[n : n + 1]]
        object.__setattr__(self, "points", tuple(sort_by_needs(by_seed)))

    @property
    def title(self) -> str:
        """The first line of its file."""
        return self.about.partition("\n")[0].rstrip(".")

    @property
    def folder(self) -> str:
        """The folder of its results."""
        return f"{self.name}-{self.scale}" if self.scale else self.name


class Add:
    """The argument of `sweep(add)`: it collects points and cells, and raises on contradictory ones."""

    def __init__(self, scale: str, paper: Paper | None):
        self.scale, self._paper = scale, paper
        self.cells: dict[tuple[str, str], Cell] = {}
        self._names: dict[str, Point] = {}

    @property
    def paper(self) -> Paper:
        """The table that the file names as PAPER."""
        if self._paper is None:
            raise ValueError("the sweep has no PAPER; its cells give the table its rows and columns")
        return self._paper

    def pretrain(self, name: str, config: str, **settings: Any) -> Point:
        """Add a pretraining, which runs once for all cells that begin with it."""
        return self._add(Point(name, "pretrain", config, settings))

    def transfer(
        self, row: str, column: str, config: str, *, of: str, seeds: Sequence[int], score: str = "", **settings: Any
    ) -> tuple[Point, ...]:
        """Add a cell and its runs of `finetune`, one per seed; `figure` can show other figures of these runs."""
        points = self.runs(f"{row}, {column}", config, seeds=seeds, **settings)
        percent = points[0].resolved.get("task") not in QUESTIONS  # their official scorers return percentages
        if score.startswith("adapted/"):  # figures of a language model: perplexities, losses and accuracies
            percent = score.endswith("accuracy")
        self._add_cell(Cell(row, column, points, tuple(seeds), of, score, percent))
        return points

    def runs(self, name: str, config: str, *, seeds: Sequence[int], **settings: Any) -> tuple[Point, ...]:
        """Add runs of `finetune`, one per seed, without a cell; `figure` shows their figures."""
        if "seed" in settings:
            raise ValueError(f"{name}: seed={settings['seed']!r} and seeds={list(seeds)}: leave one of them out")
        if not seeds or len(set(seeds)) < len(seeds):
            raise ValueError(f"{name}: seeds={list(seeds)}, expected one or more, none of them twice")
        each = ((f"{name}, seed {seed}", {**settings, "seed": seed}) for seed in seeds)
        return tuple(self._add(Point(called, "finetune", config, settings_of_run)) for called, settings_of_run in each)

    def figure(
        self, row: str, column: str, points: Point | Sequence[Point], *, of: str, score: str, percent: bool = False
    ) -> None:
        """Add a cell that shows a figure of runs that exist already, by its name; see `table.read_figures`."""
        runs = (points,) if isinstance(points, Point) else tuple(points)
        if not runs:
            raise ValueError(f"the cell {row}, {column} has no runs to show a figure of")
        if not score and any(point.program == "pretrain" for point in runs):
            raise ValueError(
                f"the cell {row}, {column} has score='', expected a figure of a pretraining, such as 'loss'"
            )
        seeds = [point.resolved.seed for point in runs]
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"the cell {row}, {column} has runs of seeds={seeds}, expected none of them twice")
        self._add_cell(Cell(row, column, runs, tuple(seeds), of, score, percent))

    def _add(self, point: Point) -> Point:
        if point.name in self._names:
            raise ValueError(f"two points are called {point.name!r}: give each a name of its own")
        self._names[point.name] = point
        return point

    def _add_cell(self, cell: Cell) -> None:
        table = self._paper
        pairs = (("row", cell.row, table.rows), ("column", cell.column, table.columns)) if table else ()
        for kind, name, names in pairs:
            if name not in names:
                listed = f"{', '.join(names)}{did_you_mean(name, names)}"
                raise ValueError(f"there is no {kind} {name!r} in the table: its {kind}s are {listed}")
        if (cell.row, cell.column) in self.cells:
            raise ValueError(f"the cell {cell.row}, {cell.column} is there twice")
        self.cells[cell.row, cell.column] = cell


def read_sweep(file: str, scale: str | None = None) -> Sweep:
    """Return the sweep that a file defines at a scale, by default at `toy` or the only one.

    Without `PAPER` the cells give the table its rows and columns, and the first row is the reference.
    """
    path = find_file(file, SWEEPS)
    if not path.is_file():
        names = sorted(other.stem for other in SWEEPS.glob("[!_]*.py"))
        near = f"{file}.py" if Path(f"{file}.py").is_file() else nearest(path.stem, names)
        hint = f"did you mean {near}?" if near else f"give your own file, or one of {', '.join(names)}"
        raise FileNotFoundError(f"--sweep={file}: there is no such sweep; {hint}")
    with _locate_errors(path):
        definition = runpy.run_path(str(path), run_name=module_name(path, SWEEPS))
    about, scales = (definition["__doc__"] or "").strip(), tuple(definition.get("SCALES", ()))
    if "sweep" not in definition or not about:
        missing = "docstring" if "sweep" in definition else "function sweep(add)"
        raise ValueError(f"--sweep={file}: it has no {missing}; --new=my_sweep.py writes an example")
    scale = _choose_scale(path.stem, scale, scales)
    notes, plot = definition.get("NOTES", {}), definition.get("plot")
    notes = {scale: notes} if isinstance(notes, str) else notes
    if not isinstance(notes, dict) or not notes.keys() <= {*scales, scale}:
        expected = f"a text for some of its scales, {', '.join(scales)}" if scales else "a text"
        raise ValueError(f"--sweep={file}: NOTES={notes!r}, expected {expected}")
    if plot is not None and not callable(plot):
        raise ValueError(f"--sweep={file}: plot={plot!r}, expected a function of the table's means")
    add = Add(scale, definition.get("PAPER"))
    with _locate_errors(path):
        definition["sweep"](add)
    if not add.cells:
        raise ValueError(f"--sweep={file}: it adds nothing; use add.transfer(row, column, …)")
    rows, columns = (tuple(dict.fromkeys(names)) for names in zip(*add.cells))
    table = definition.get("PAPER") or Paper.without_figures(columns, rows, rows[0])
    steps = bool(definition.get("PATH", False))
    return Sweep(path.stem, scale, about, table, tuple(add.cells.values()), plot, notes.get(scale, ""), steps)


def _choose_scale(name: str, scale: str | None, scales: Sequence[str]) -> str:
    if scale is None and (len(scales) < 2 or "toy" in scales):
        return "toy" if "toy" in scales else "".join(scales)
    if scale is None:
        raise ValueError(f"{name} has several scales: give --scale={' or --scale='.join(scales)}")
    if scale not in scales:
        has = f"it has {', '.join(scales)}" if scales else "it has none: leave --scale out"
        raise ValueError(f"--scale={scale}: {name} has no such scale; {has}")
    return scale


@contextlib.contextmanager
def _locate_errors(file: Path) -> Iterator[None]:
    """Turn any error in a sweep's file into one line with its place."""
    try:
        yield
    except (Exception, SystemExit) as error:  # the program would end as if it had done its work
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        where = f"{file}, line {lines[-1]}" if lines else str(file)
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise ValueError(f"--sweep={where}: {kind}{error}") from error
