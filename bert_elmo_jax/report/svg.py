"""Figures as SVG, readable on light and dark pages."""

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bert_elmo_jax.report.figures import COLOURS, INK, PALE, Bars, Curve, Dots, Drawable, Grid, Lines, Number, Scatter
from bert_elmo_jax.report.results import count_columns

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 300, 52, 10, 40
CURVE_HEIGHT, CURVE_LEFT = 260, 76
LETTER = 7.2  # about the width of a Latin letter; the reader's font decides
POINTS = 600  # more points of a curve cannot be distinguished
Point = tuple[float, float]


def draw_svg(figure: Drawable) -> str:
    """Return a figure as SVG; a figure without points becomes a paragraph that says so."""
    return _DRAW[type(figure)](figure)


def format_number(value: Any) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def thin_out(points: Sequence[Point]) -> list[Point]:
    """Return at most `POINTS` points, each the mean of neighbours."""
    size = -(-len(points) // POINTS)
    groups = [points[at : at + size] for at in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def smooth(points: Sequence[Point]) -> list[Point]:
    """Return the running mean, over a thirtieth of the curve to either side."""
    reach = max(1, len(points) // 30)
    near = [points[max(0, n - reach) : n + reach + 1] for n in range(len(points))]
    return [(x, sum(y for _, y in part) / len(part)) for (x, _), part in zip(points, near)]


def _draw_lines(figure: Lines) -> str:
    def scale(x: Number) -> float:
        return math.log10(x) if figure.logarithmic else float(x)

    points = [point for line in figure.series.values() for point in line]
    if not points:
        return "<p>no figure to draw</p>"
    low, high = _pad([y for _, y in points])
    first, last = _pad([scale(x) for x, _ in points], 0.0)

    def place(x: Number, y: Number) -> Point:
        share = (scale(x) - first) / (last - first)
        return LEFT + share * (WIDTH - LEFT - 20), TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = []
    for n, (name, line) in enumerate(figure.series.items()):
        colour, at = COLOURS[n % len(COLOURS)], HEIGHT + 18 * n
        dash = "" if n < len(COLOURS) else ' stroke-dasharray="5 3"'
        spots = [place(x, y) for x, y in line]
        drawn.append(_polyline(spots, colour, 2, dash))
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        ends = f'x1="{LEFT}" y1="{at + 4}" x2="{LEFT + 24}" y2="{at + 4}"'
        drawn.append(f'<line {ends} stroke="{colour}" stroke-width="2"/>' + _text(LEFT + 32, at + 8, name))
    for y in (low, (low + high) / 2, high):
        drawn.append(_text(LEFT - 6, place(points[0][0], y)[1] + 4, format_number(y), "end"))
    for x in sorted({x for x, _ in points}):
        drawn.append(_text(place(x, low)[0], HEIGHT - 22, f"{x:g}", "middle"))
    drawn.append(_text(WIDTH / 2, HEIGHT - 6, figure.across, "middle"))
    return _frame(WIDTH, HEIGHT + 18 * len(figure.series), drawn)


def _draw_curve(figure: Curve) -> str:
    points = [(x, y) for x, y in figure.points if math.isfinite(y)]
    if not points:
        return "<p>no finite value</p>"
    low, high = _pad([y for _, y in points], 0.0)
    first, last = figure.points[0][0], max(figure.points[-1][0], figure.points[0][0] + 1)

    def place(x: float, y: float) -> Point:
        share = (x - first) / (last - first)
        return CURVE_LEFT + share * (WIDTH - CURVE_LEFT - 8), 8 + (high - y) / (high - low) * (CURVE_HEIGHT - 44)

    thin = thin_out(points)
    lines = [(PALE, 1, thin), (INK, 2, smooth(thin))] if figure.noisy and len(thin) > 20 else [(INK, 2, thin)]
    drawn = [_polyline([place(x, y) for x, y in line], colour, width) for colour, width, line in lines]
    for y in (low, (low + high) / 2, high):
        drawn.append(_text(CURVE_LEFT - 6, place(first, y)[1] + 4, format_number(y), "end"))
    drawn.append(_text(CURVE_LEFT, CURVE_HEIGHT - 8, f"{first:,.0f}"))
    drawn.append(_text(WIDTH - 8, CURVE_HEIGHT - 8, f"{last:,.0f} steps", "end"))
    return _frame(WIDTH, CURVE_HEIGHT, drawn)


def _draw_bars(figure: Bars) -> str:
    row = 22
    drawn, at = [], 0
    for name, shares in figure.series.items():
        drawn.append(f'<text x="0" y="{at + 15}" font-weight="600">{html.escape(name)}</text>')
        at += row
        for n, (label, share) in enumerate(zip(figure.labels, shares)):
            length = max(0.0, share) * (WIDTH - 150)
            size = f'width="{length:.1f}" height="{row - 6}"'
            drawn.append(_text(84, at + 15, label, "end"))
            drawn.append(f'<rect x="90" y="{at + 3}" {size} fill="{COLOURS[n % len(COLOURS)]}"/>')
            drawn.append(_text(96 + length, at + 15, f"{share:.2f}"))
            at += row
        at += row // 2
    return _frame(WIDTH, at, drawn)


def _draw_dots(figure: Dots) -> str:
    names = sorted(set(figure.groups))
    size = 340
    points = np.asarray(figure.points, np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = (size - 20) / max(float((high - low).max()), 1e-12)  # the same for both axes, to keep distances
    drawn = []
    for (x, y), group in zip((points - low) * scale + 10, figure.groups):
        colour = COLOURS[names.index(group) % len(COLOURS)]
        drawn.append(f'<circle cx="{x:.1f}" cy="{size - y:.1f}" r="2.5" fill="{colour}" opacity=".6"/>')
    for n, name in enumerate(names):
        at = size + 6 + 18 * n
        drawn.append(f'<circle cx="16" cy="{at}" r="5" fill="{COLOURS[n % len(COLOURS)]}"/>')
        drawn.append(_text(28, at + 4, name))
    return _frame(size, size + 18 * len(names), drawn)


def _draw_scatter(figure: Scatter) -> str:
    values = [value for point in figure.points for value in point]
    low, high = min(values), max(values)
    scale = 300 / ((high - low) or 1.0)
    drawn = [f'<line x1="10" y1="310" x2="310" y2="10" stroke="{PALE}"/>']
    for x, y in figure.points:
        spot = f'cx="{10 + (x - low) * scale:.1f}" cy="{310 - (y - low) * scale:.1f}"'
        drawn.append(f'<circle {spot} r="2" fill="{INK}" opacity=".5"/>')
    drawn += [_text(10, 326, format_number(low)), _text(310, 326, format_number(high), "end")]
    return _frame(320, 330, drawn)


def _draw_grid(figure: Grid) -> str:
    size = 24 if len(figure.columns) <= 12 else 15
    left = max(60.0, _measure(figure.rows) + 12)
    turned = _measure(figure.columns) > size  # long names are written upright
    top = _measure(figure.columns) + 12 if turned else 20.0
    drawn = []
    for r, row in enumerate(np.clip(figure.values, 0, 1).tolist()):
        drawn.append(_text(left - 6, top + (r + 0.65) * size, figure.rows[r], "end"))
        drawn += [
            f'<rect x="{left + c * size:.0f}" y="{top + r * size:.0f}" width="{size - 1}" height="{size - 1}" '
            f'fill="{INK}" fill-opacity="{value:.2f}"><title>{value:.3f}</title></rect>'
            for c, value in enumerate(row)
            if value >= 0.005  # fainter cells cannot be seen
        ]
    for c, name in enumerate(figure.columns):
        x = left + (c + 0.5) * size
        upright = f'<text transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)">{html.escape(name)}</text>'
        drawn.append(upright if turned else _text(x, 14, name, "middle"))
    return _frame(left + size * max(len(figure.columns), 6), top + 4 + size * len(figure.rows), drawn)


_DRAW: dict[type, Callable[[Any], str]] = {
    Lines: _draw_lines, Curve: _draw_curve, Bars: _draw_bars, Dots: _draw_dots, Scatter: _draw_scatter,
    Grid: _draw_grid,
}  # fmt: skip


def _measure(names: Sequence[str]) -> float:
    return LETTER * max(map(count_columns, names), default=0)


def _pad(values: Sequence[Number], share: float = 0.05) -> Point:
    """Return a range that holds the values, a share wider at both ends; a single value gets a range around it."""
    low, high = min(values), max(values)
    more = share * (high - low) if high > low else 0.5
    return low - more, high + more


def _polyline(points: Sequence[Point], colour: str, width: int, style: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="{width}"{style} points="{path}"/>'


def _text(x: Number, y: Number, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _frame(width: Number, height: Number, drawn: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img">{"".join(drawn)}</svg>'
