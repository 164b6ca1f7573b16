"""Figures as PNG, drawn by matplotlib (the extra `figures`) in a font that has all their letters."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.report.figures import COLOURS, INK, Arcs, Bars, Dots, Figure, Grid, Lines, Panels
from bert_elmo_jax.report.svg import COUNTED, NEAR, count_coinciding

HANGUL = re.compile("[ᄀ-ᇿ㄰-㆏가-힣]")


def check_matplotlib() -> None:
    """Raise ImportError now if `write_png` would raise it later, after hours of computing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("PNG files need matplotlib: pip install 'bert_elmo_jax[figures]'") from None


def write_png(figure: Figure, path: str | Path, *, stage: bool = False) -> Path:
    """Draw a figure into a PNG file; Hangul in it needs an installed font that has Hangul.

    With `stage`, the type is as large as the last row of a lecture hall needs.
    """
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    fonts = dict.fromkeys(["DejaVu Sans", find_font(collect_words(figure))])  # the second has what the first lacks
    type_size = {"font.size": 15.0, "lines.linewidth": 3.0} if stage else {}
    with rc_context({"font.family": list(fonts), "axes.unicode_minus": False, **type_size}):
        columns = [*figure.columns.items()] if isinstance(figure, Panels) else [("", [figure])]
        rows = max(len(figures) for _, figures in columns)
        sheet = Sheet(figsize=(7 * len(columns), 5 * rows), dpi=150, layout="constrained")
        FigureCanvasAgg(sheet)
        axes = sheet.subplots(rows, len(columns), squeeze=False)
        for column, (name, figures) in zip(axes.T, columns):
            for place, panel in zip(column, figures):
                place.set_title(panel.title)
                _DRAW[type(panel)](place, panel)
            for place in column[len(figures) :]:
                place.axis("off")
            if name:
                column[0].set_title(f"{name}\n{column[0].get_title()}", fontweight="bold")
        sheet.savefig(path, format="png")
    return Path(path)


def collect_words(figure: Figure) -> str:
    """Return all text in a figure.

    >>> collect_words(Bars("배", ["layer 1"], {"runs/elmo": [1.0]}))
    '배 layer 1 runs/elmo'
    """
    if isinstance(figure, Panels):
        parts = [*figure.columns, *(collect_words(panel) for each in figure.columns.values() for panel in each)]
    elif isinstance(figure, Arcs):
        parts = [figure.title, *figure.words, *figure.targets]
    elif isinstance(figure, Grid):
        parts = [figure.title, *figure.rows, *figure.columns]
    elif isinstance(figure, Dots):
        parts = [figure.title, *dict.fromkeys(figure.groups)]
    elif isinstance(figure, Bars):
        parts = [figure.title, *figure.labels, *figure.series]
    else:
        parts = [figure.title, figure.across, figure.up, *figure.series]
    return " ".join(parts)


def find_font(text: str) -> str:
    """Return the name of an installed font that has the Hangul of a text; without Hangul the usual font."""
    from matplotlib import font_manager, ft2font

    hangul = {ord(letter) for letter in HANGUL.findall(text)}
    if not hangul:
        return "DejaVu Sans"
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.name, entry.fname)):
        if entry.name.startswith("Last Resort"):  # comes with matplotlib, and has a box for every letter
            continue
        try:
            if hangul <= set(ft2font.FT2Font(entry.fname).get_charmap()):
                return str(entry.name)
        except (OSError, RuntimeError):
            continue  # unreadable font file
    raise ValueError(
        f"no installed font has Hangul, which {text[:40]!r} needs: install one (such as fonts-nanum); the figures of "
        "report.html need none"
    )


def _draw_lines(axes: Any, figure: Lines) -> None:
    for n, (name, points) in enumerate(figure.series.items()):
        style = "-" if n < len(COLOURS) else "--"
        axes.plot(*zip(*points), style, marker="o", label=name, color=COLOURS[n % len(COLOURS)])
    axes.set_xlabel(figure.across)
    axes.set_ylabel(figure.up)
    if figure.logarithmic:
        axes.set_xscale("log")
    axes.legend(fontsize="small")


def _draw_bars(axes: Any, figure: Bars) -> None:
    width = 0.8 / len(figure.series)
    for n, (name, shares) in enumerate(figure.series.items()):
        axes.bar(np.arange(len(shares)) + n * width, shares, width, label=name, color=COLOURS[n % len(COLOURS)])
    axes.set_xticks(np.arange(len(figure.labels)) + 0.4 - width / 2, figure.labels)
    if len(figure.series) > 1:
        axes.legend(fontsize="small")
    else:
        axes.set_xlabel(next(iter(figure.series)))


def _draw_dots(axes: Any, figure: Dots) -> None:
    points = np.asarray(figure.points, np.float64)
    cell = np.maximum(np.ptp(points, axis=0), 1e-12) / (100 * NEAR)  # dots within NEAR of them overlap
    names = sorted(set(figure.groups))
    spots = count_coinciding(points / cell, figure.groups)
    for n, name in enumerate(names):
        own_spots = [(x, y, counts, len(counts) > 1) for (x, y), counts in spots if name in counts]
        for x, y, counts, shared in own_spots:
            place = ((x + 7 * NEAR * n * shared) * cell[0], y * cell[1])  # groups at one place stand side by side
            if counts[name] >= COUNTED:
                axes.annotate(str(counts[name]), place, (0, 9), textcoords="offset points", ha="center")
            size = 12 * min(counts[name], 32)
            label = {} if (x, y) != own_spots[0][:2] else {"label": name}
            axes.scatter(*place, s=size, alpha=0.7, color=COLOURS[n % len(COLOURS)], **label)
    axes.set(xlabel=figure.across, ylabel=figure.up)
    axes.margins(0.15)
    for handle in axes.legend(fontsize="small").legend_handles:
        handle.set_sizes([40])


def _draw_grid(axes: Any, figure: Grid) -> None:
    drawn = axes.imshow(figure.values, vmin=0, vmax=max(float(np.max(figure.values, initial=0)), 1e-12), cmap="Blues")
    axes.set_xticks(range(len(figure.columns)), figure.columns, rotation=90 if max(map(len, figure.columns)) > 2 else 0)
    axes.set_yticks(range(len(figure.rows)), figure.rows)
    axes.figure.colorbar(drawn, ax=axes)


def _draw_arcs(axes: Any, figure: Arcs) -> None:
    values = np.clip(figure.values, 0, None)
    largest = max(float(values.max(initial=0)), 1e-12)
    single_row = int((values.sum(axis=1) > 0).sum()) == 1
    for r, c in np.argwhere(values > 0.02 * largest):
        share = values[r, c] / largest
        axes.plot([0, 1], [r, c], color=INK, linewidth=1 + 7 * share, alpha=0.35 + 0.65 * share)
        if single_row and values[r, c] >= 0.005:
            axes.text(1.85, c, f"{values[r, c]:.2f}", va="center", ha="right")
    for names, x, side in ((figure.words, -0.04, "right"), (figure.targets, 1.04, "left")):
        for n, name in enumerate(names):
            axes.text(x, n, name, va="center", ha=side)
    axes.set(xlim=(-0.9, 1.9), ylim=(max(len(figure.words), len(figure.targets)) - 0.5, -0.5))
    axes.axis("off")


_DRAW: dict[type, Any] = {Lines: _draw_lines, Bars: _draw_bars, Dots: _draw_dots, Grid: _draw_grid, Arcs: _draw_arcs}
