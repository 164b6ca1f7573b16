"""Figures as plain data, and as SVG for a page that is read anywhere: browsers find a font for Hangul by themselves."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.report.results import places
from bert_elmo_jax.train.report import INK

COLOURS = (INK, "#c52", "#283", "#a3a", "#b80", "#888", "#07a", "#d27")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 300, 52, 10, 40
LETTER = 7.2  # a Latin letter's width, about; fonts are the reader's


Number = int | float


@dataclass(frozen=True)
class Lines:
    """A line for each name, through (x, y); `logarithmic` spreads small x."""

    title: str
    across: str
    up: str
    series: Mapping[str, Sequence[tuple[Number, Number]]]
    logarithmic: bool = False


@dataclass(frozen=True)
class Bars:
    """A row of bars for each name, shares from 0 to 1, one for each of `labels`."""

    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[Number]]


@dataclass(frozen=True, eq=False)
class Dots:
    """A cloud of points, coloured by the group that each is of."""

    title: str
    points: Float[np.ndarray, "N 2"]
    groups: Sequence[str]


@dataclass(frozen=True, eq=False)
class Grid:
    """A number for each row and column, darker where it is larger, on a scale from 0 to 1."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Float[np.ndarray, "R C"]


Figure = Lines | Bars | Dots | Grid


def svg(figure: Figure) -> str:
    """The figure as an SVG.

    >>> svg(Lines("pos", "layer", "%", {"눈": [(0.0, 90.0), (1.0, 97.3)]})).count("<circle")
    2
    >>> svg(Bars("input", ["0", "1"], {"tagger": [0.25, 0.75]})).count("<rect")
    2
    >>> svg(Dots("bank", np.eye(2), ["money", "riverside"])).count("<circle")
    4
    >>> svg(Grid("attention", ["1"], ["1", "2"], np.eye(2)[:1])).count("<rect")
    2
    """
    if isinstance(figure, Lines):
        return _lines(figure)
    if isinstance(figure, Bars):
        return _bars(figure)
    return _dots(figure) if isinstance(figure, Dots) else _grid(figure)


def across(figure: Lines, x: Number) -> float:
    """Where a number stands on the horizontal axis, before it is scaled.

    >>> across(Lines("", "", "", {}, logarithmic=True), 0.01)
    -2.0
    """
    return math.log10(x) if figure.logarithmic else float(x)


def _lines(figure: Lines) -> str:
    points = [point for line in figure.series.values() for point in line]
    if not points:
        return "<p>no figure to draw</p>"
    low, high = _padded([y for _, y in points])
    first, last = _padded([across(figure, x) for x, _ in points], 0.0)
    height = HEIGHT + 18 * len(figure.series)

    def place(x: Number, y: Number) -> tuple[float, float]:
        share = (across(figure, x) - first) / (last - first)
        return LEFT + share * (WIDTH - LEFT - 20), TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = []
    for n, (name, line) in enumerate(figure.series.items()):
        colour = COLOURS[n % len(COLOURS)]
        dash = "" if n < len(COLOURS) else ' stroke-dasharray="5 3"'
        spots = [place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{path}"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        drawn.append(_key(n, name, HEIGHT + 18 * n, colour))
    for y in (low, (low + high) / 2, high):
        drawn.append(f'<text x="{LEFT - 6}" y="{place(points[0][0], y)[1] + 4:.1f}" text-anchor="end">{y:.4g}</text>')
    for x in sorted({x for x, _ in points}):
        drawn.append(f'<text x="{place(x, low)[0]:.1f}" y="{HEIGHT - 22}" text-anchor="middle">{x:g}</text>')
    drawn.append(_text(WIDTH / 2, HEIGHT - 6, figure.across))
    return _whole(WIDTH, height, drawn)


def _bars(figure: Bars) -> str:
    row = 22
    drawn, at = [], 0
    for name, shares in figure.series.items():
        drawn.append(f'<text x="0" y="{at + 15}" font-weight="600">{html.escape(name)}</text>')
        at += row
        for n, (label, share) in enumerate(zip(figure.labels, shares)):
            length = max(0.0, share) * (WIDTH - 150)
            drawn.append(f'<text x="84" y="{at + 15}" text-anchor="end">{html.escape(label)}</text>')
            colour = COLOURS[n % len(COLOURS)]
            drawn.append(f'<rect x="90" y="{at + 3}" width="{length:.1f}" height="{row - 6}" fill="{colour}"/>')
            drawn.append(f'<text x="{96 + length:.1f}" y="{at + 15}">{share:.2f}</text>')
            at += row
        at += row // 2
    return _whole(WIDTH, at, drawn)


def _dots(figure: Dots) -> str:
    names = sorted(set(figure.groups))
    size = 340
    points = np.asarray(figure.points, np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes: distances are what the picture is about.
    scale = (size - 20) / max(float((high - low).max()), 1e-12)
    drawn = []
    for (x, y), group in zip((points - low) * scale + 10, figure.groups):
        colour = COLOURS[names.index(group) % len(COLOURS)]
        drawn.append(f'<circle cx="{x:.1f}" cy="{size - y:.1f}" r="2.5" fill="{colour}" opacity=".6"/>')
    for n, name in enumerate(names):
        at = size + 6 + 18 * n
        drawn.append(f'<circle cx="16" cy="{at}" r="5" fill="{COLOURS[n % len(COLOURS)]}"/>')
        drawn.append(f'<text x="28" y="{at + 4}">{html.escape(name)}</text>')
    return _whole(size, size + 18 * len(names), drawn)


def _grid(figure: Grid) -> str:
    size = 24
    left = max(60.0, _long(figure.rows) + 12)
    turned = _long(figure.columns) > size  # names that would run into one another stand upright
    top = _long(figure.columns) + 12 if turned else 20.0
    drawn = []
    for r, row in enumerate(np.clip(figure.values, 0, 1).tolist()):
        name = html.escape(figure.rows[r])
        drawn.append(f'<text x="{left - 6:.0f}" y="{top + r * size + 16:.0f}" text-anchor="end">{name}</text>')
        drawn += [
            f'<rect x="{left + c * size:.0f}" y="{top + r * size:.0f}" width="{size - 1}" height="{size - 1}" '
            f'fill="{INK}" fill-opacity="{value:.2f}"><title>{value:.3f}</title></rect>'
            for c, value in enumerate(row)
        ]
    for c, name in enumerate(figure.columns):
        x = left + (c + 0.5) * size
        upright = f'<text transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)">{html.escape(name)}</text>'
        drawn.append(upright if turned else _text(x, 14, name))
    return _whole(left + size * max(len(figure.columns), 6), top + 4 + size * len(figure.rows), drawn)


def _long(names: Sequence[str]) -> float:
    """How long the longest of some names is, about."""
    return LETTER * max(map(places, names), default=0)


def _padded(values: Sequence[Number], share: float = 0.05) -> tuple[float, float]:
    low, high = min(values), max(values)
    more = share * (high - low) if high > low else 0.5
    return low - more, high + more


def _key(n: int, name: str, at: Number, colour: str) -> str:
    mark = f'<line x1="{LEFT}" y1="{at + 4}" x2="{LEFT + 24}" y2="{at + 4}" stroke="{colour}" stroke-width="2"/>'
    return f'{mark}<text x="{LEFT + 32}" y="{at + 8}">{html.escape(name)}</text>'


def _text(x: Number, y: Number, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{html.escape(text)}</text>'


def _whole(width: Number, height: Number, drawn: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img">{"".join(drawn)}</svg>'
