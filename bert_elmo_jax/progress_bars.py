"""Progress bars: redrawn on a terminal; in a log file or a notebook, a line every ten seconds."""

import contextlib
import functools
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

from tqdm import tqdm

EVERY = 10.0  # seconds between two lines
LINE = "{desc}{percentage:3.0f}%| {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
_in_place_of_bars: Callable[[], object] | None = None
LINE_WITHOUT_TOTAL = "{desc}{n_fmt} {unit} [{elapsed}, {rate_fmt}{postfix}]"


def progress_bar(
    total: float | int | None = None,
    desc: str = "",
    unit: str = "it",
    *,
    shown: bool = True,
    file: Any = None,
    **options: Any,
) -> "Bar":
    """Return a progress bar on standard error; without a `total`, it counts. `options` are tqdm's.

    >>> with progress_bar(2, "predicting", "texts", file=sys.stdout) as bar:  # doctest: +ELLIPSIS
    ...     for _ in range(2):
    ...         bar.update()
    predicting: 100%| 2/2 texts [00:00<00:00, ...texts/s]
    """
    stream = sys.stderr if file is None else file
    shown = shown and _in_place_of_bars is None
    if stream.isatty():
        return Bar(total=total, desc=desc or None, unit=unit, file=stream, disable=not shown, **options)
    options = {"bar_format": LINE_WITHOUT_TOTAL if total is None else LINE, "mininterval": EVERY, **options}
    return LineBar(
        total=total, desc=f"{desc}: " if desc else None, unit=unit, file=stream, disable=not shown, **options
    )


@contextlib.contextmanager
def replace_bars(step: Callable[[], object]) -> Iterator[None]:
    """Show no bars in a worker process: whenever one would move, call `step`, which may raise to stop the work."""
    global _in_place_of_bars
    before, _in_place_of_bars = _in_place_of_bars, step
    try:
        yield
    finally:
        _in_place_of_bars = before


class Bar(tqdm):
    """A bar of tqdm that names long waits, and leaves them out of the time left."""

    _time: Callable[[], float]  # of tqdm
    shapes: set[Hashable] | None = None  # of batches that were computed, to name compilations; None: they have no name

    def update(self, n: float | int | None = 1) -> bool | None:
        """Count finished units of work."""
        if _in_place_of_bars is not None:
            _in_place_of_bars()
        return super().update(n)

    @contextlib.contextmanager
    def waiting_for(self, name: str) -> Iterator[None]:
        """Show a name in place of the description, and leave the time out of the rate and the time left."""
        if self.disable:
            yield
            return
        description, began = self.desc, self._time()
        self.announce(name)
        try:
            yield
        finally:
            self.desc = description
            self.last_print_t += self._time() - began
            self.refresh()

    def announce(self, name: str) -> None:
        """Show a description at once."""
        self.set_description(name)

    def computing(self, shape: Hashable) -> contextlib.AbstractContextManager[None]:
        """Return a context for the wait for a batch: the first one of each shape is compiled."""
        if self.shapes is None or shape in self.shapes:
            return contextlib.nullcontext()
        self.shapes.add(shape)
        return self.waiting_for("compiling")

    def start_at(self, count: int) -> None:
        """Begin the clock again at a count; the time so far leaves the rate."""
        if not self.disable:
            self.n = self.initial = self.last_print_n = count
            self.start_t = self.last_print_t = self._time()
            self.refresh()

    def pass_over(self, count: int) -> None:
        """Count what an earlier process has done, at no time."""
        if not self.disable:
            self.n, self.initial, self.last_print_n = self.n + count, self.initial + count, self.last_print_n + count
            self.refresh()


class LineBar(Bar):
    """Lines for logs: one every ten seconds, one for each new name, and one at the end."""

    def __init__(self, *args: Any, **options: Any):
        self._written_at: float | None = None
        self._names: set[str] = set()
        self._last: tuple[str | None, float] | None = None  # the description and the count of the last line
        super().__init__(*args, **options)
        if not self.disable:
            self._written_at = self._time()

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        """Return the function that writes a line."""

        def write(line: str) -> None:
            if line:
                file.write(f"{line.rstrip()}\n")
                file.flush()

        return write

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line if the last one is ten seconds old."""
        if msg != "" and self._written_at is not None and self._time() - self._written_at >= EVERY:
            self._write()

    def announce(self, name: str) -> None:
        """Set a description, and write a line when it is new."""
        self.set_description(name, refresh=False)
        if not self.disable and name not in self._names:
            self._names.add(name)
            self._write()

    def clear(self, nolock: bool = False) -> None:
        """Do nothing, because lines stay."""

    def close(self) -> None:
        """Write the last line."""
        if not self.disable and self.leave is not False and self._time() >= self.start_t + (self.delay or 0):
            self._ema_dt = functools.partial(float, 0)  # the last line has the rate of all
            if (self.desc, self.n) != self._last:
                self._write()
        self.leave = False
        super().close()

    def _write(self) -> None:
        self._written_at, self._last = self._time(), (self.desc, self.n)
        self.sp(str(self))


class BarPart(NamedTuple):
    """The part of a bar that a call advances: so many of its units."""

    bar: Bar
    units: int


class PartCounter:
    """Advances a part of a bar by the rows that are done."""

    def __init__(self, part: BarPart, rows: int):
        self._part, self._rows, self._done = part, rows, 0
        self.computing = part.bar.computing

    def update(self, rows: int) -> None:
        """Count rows."""
        units, before = self._part.units, self._done * self._part.units // self._rows
        self._done += rows
        self._part.bar.update(self._done * units // self._rows - before)


@contextlib.contextmanager
def count_rows(progress: bool | BarPart, rows: int, desc: str = "predicting") -> Iterator[Bar | PartCounter]:
    """Yield a counter of finished rows: a bar (True), a hidden one, or a part of another bar."""
    if isinstance(progress, BarPart):
        yield PartCounter(progress, max(rows, 1))
        return
    with progress_bar(rows, desc, "rows", shown=progress) as bar:
        yield bar
