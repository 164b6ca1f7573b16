"""Figures as PNG, drawn by matplotlib (the extra `figures`) in a font that has all their letters."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from bert_elmo_jax.report.figures import COLOURS, Bars, Dots, Figure, Grid, Lines

HANGUL = re.compile("[ᄀ-ᇿ㄰-㆏가-힣]")


def check_matplotlib() -> None:
    """Raise ImportError now if `write_png` would raise it later, after hours of computing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("PNG files need matplotlib: pip install 'bert_elmo_jax[figures]'") from None


def write_png(figure: Figure, path: str | Path) -> Path:
    """Draw a figure into a PNG file; Hangul in it needs an installed font that has Hangul."""
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    fonts = dict.fromkeys(["DejaVu Sans", find_font(collect_words(figure))])  # the second has what the first lacks
    with rc_context({"font.family": list(fonts), "axes.unicode_minus": False}):
        sheet = Sheet(figsize=(7, 5), dpi=150, layout="constrained")
        FigureCanvasAgg(sheet)
        axes = sheet.add_subplot()
        axes.set_title(figure.title)
        _DRAW[type(figure)](axes, figure)
        sheet.savefig(path, format="png")
    return Path(path)


def collect_words(figure: Figure) -> str:
    """Return all text in a figure.

    >>> collect_words(Bars("배", ["layer 1"], {"runs/elmo": [1.0]}))
    '배 layer 1 runs/elmo'
    """
    if isinstance(figure, Grid):
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
    axes.legend(fontsize="small")


def _draw_dots(axes: Any, figure: Dots) -> None:
    groups = np.array(figure.groups)
    for n, name in enumerate(sorted(set(figure.groups))):
        axes.scatter(*figure.points[groups == name].T, s=8, alpha=0.6, label=name, color=COLOURS[n % len(COLOURS)])
    axes.set(xlabel=figure.across, ylabel=figure.up)
    axes.set_aspect("equal", "datalim")
    axes.legend(fontsize="small")


def _draw_grid(axes: Any, figure: Grid) -> None:
    axes.imshow(figure.values, vmin=0, vmax=1, cmap="Blues")
    axes.set_xticks(range(len(figure.columns)), figure.columns)
    axes.set_yticks(range(len(figure.rows)), figure.rows)


_DRAW: dict[type, Any] = {Lines: _draw_lines, Bars: _draw_bars, Dots: _draw_dots, Grid: _draw_grid}
