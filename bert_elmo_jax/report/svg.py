"""Figures as SVG, readable on light and dark pages."""

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.report.figures import (
    COLOURS,
    INK,
    PALE,
    Arcs,
    Bars,
    Curve,
    Dots,
    Drawable,
    Grid,
    Lines,
    Number,
    Panels,
    Scatter,
)  # fmt: skip
from bert_elmo_jax.report.results import count_columns

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 400, 250, 64, 26, 40, 14  # small, to be readable on a phone
LETTER = 7.2  # about the width of a Latin letter; the reader's font decides
POINTS = 600  # more points of a curve cannot be distinguished
NEAR = 3  # dots this near overlap
LARGEST_DOT, COUNTED = 14, 5  # the largest radius of a dot; the number of a dot is written from here
NOTHING = "<p>no figure to draw</p>"
Point = tuple[float, float]


def draw_svg(figure: Drawable) -> str:
    """Return a figure as SVG; a figure without points becomes a paragraph that says so.

    Points that are not finite are left out; a share that is not finite has a dash in place of its bar.
    """
    return _DRAW[type(figure)](figure)


def format_number(value: Any) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def list_ticks(low: Number, high: Number) -> list[float]:
    """Return two to six round numbers between `low` and `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = next(step for step in (5 * power, 2 * power, power) if step <= (high - low) / 2 or step == power)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


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

    series = {
        name: [(x, y) for x, y in _keep_finite(line) if x > 0 or not figure.logarithmic]
        for name, line in figure.series.items()
    }
    points = [point for line in series.values() for point in line]
    if not points:
        return NOTHING
    low, high = _pad([y for _, y in points])
    first, last = _pad([scale(x) for x, _ in points], 0.0)

    def place(x: Number, y: Number) -> Point:
        return _place((scale(x) - first) / (last - first), (high - y) / (high - low))

    drawn = _draw_axes(figure.across, figure.up, sorted({x for x, _ in points}), (low, high), place)
    for n, (name, line) in enumerate(series.items()):
        colour, at = COLOURS[n % len(COLOURS)], HEIGHT + 18 * n
        dash = "" if n < len(COLOURS) else ' stroke-dasharray="5 3"'
        spots = [place(x, y) for x, y in line]
        drawn.append(_polyline(spots, colour, 2, dash))
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        ends = f'x1="{LEFT}" y1="{at + 4}" x2="{LEFT + 24}" y2="{at + 4}"'
        drawn.append(f'<line {ends} stroke="{colour}" stroke-width="2"/>' + _text(LEFT + 32, at + 8, name))
    return _frame(WIDTH, HEIGHT + 18 * len(series), drawn)


def _draw_curve(figure: Curve) -> str:
    points = [(x, y) for x, y in figure.points if math.isfinite(y)]
    if not points:
        return "<p>no finite value</p>"
    low, high = _pad([y for _, y in points], 0.0)
    first, last = figure.points[0][0], max(figure.points[-1][0], figure.points[0][0] + 1)

    def place(x: Number, y: Number) -> Point:
        return _place((x - first) / (last - first), (high - y) / (high - low))

    steps = [x for x in list_ticks(first, last) if x % 1 == 0]
    drawn = _draw_axes(figure.across, figure.up, steps, (low, high), place)
    thin = thin_out(points)
    lines = [(PALE, 1, thin), (INK, 2, smooth(thin))] if figure.noisy and len(thin) > 20 else [(INK, 2, thin)]
    drawn += [_polyline([place(x, y) for x, y in line], colour, width) for colour, width, line in lines]
    return _frame(WIDTH, HEIGHT, drawn)


def _place(across: Number, down: Number) -> Point:
    """Return the point at two shares of the plot's area."""
    return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + down * (HEIGHT - TOP - BOTTOM)


def _draw_axes(
    across: str, up: str, xs: Sequence[Number], ys: Point, place: Callable[[Number, Number], Point]
) -> list[str]:
    """Return the names of both axes, the numbers at `xs` where there is room, and lines at round values of y."""
    drawn, free = [_text(0, 12, up), _text(_place(0.5, 0.0)[0], HEIGHT - 6, across, "middle")], 0.0
    for y in list_ticks(*ys):
        at = place(xs[0], y)[1]
        drawn.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity=".2"/>')
        drawn.append(_text(LEFT - 6, at + 4, format_number(y), "end"))
    for x in xs:
        label = f"{x:,g}" if x < 1e6 else format_number(x)
        at, label = place(x, ys[0])[0], str(int(x)) if across == "year" else label
        half = LETTER * len(label) / 2
        if at - half >= free:
            drawn.append(_text(min(at, WIDTH - half), HEIGHT - 22, label, "middle"))
            free = at + half + LETTER
    return drawn


def _draw_bars(figure: Bars) -> str:
    if not any(math.isfinite(share) for shares in figure.series.values() for share in shares):
        return NOTHING
    row, left = 22, max(60.0, _measure(figure.labels)) + 6
    drawn: list[str] = []
    at = 0
    for name, shares in figure.series.items():
        drawn.append(f'<text x="0" y="{at + 15}" font-weight="600">{html.escape(name)}</text>')
        at += row
        for n, (label, share) in enumerate(zip(figure.labels, shares)):
            finite = math.isfinite(share)
            length = max(0.0, share) * (WIDTH - left - 44) if finite else 0.0
            size = f'width="{length:.1f}" height="{row - 6}"'
            drawn.append(_text(left - 6, at + 15, label, "end"))
            colour = COLOURS[n % len(COLOURS)] if len(figure.series) > 1 else INK  # colours connect equal labels
            drawn.append(f'<rect x="{left:.0f}" y="{at + 3}" {size} fill="{colour}"/>')
            drawn.append(_text(left + 6 + length, at + 15, f"{share:.2f}" if finite else "–"))
            at += row
        at += row // 2
    return _frame(WIDTH, at, drawn)


def _draw_dots(figure: Dots) -> str:
    names = sorted(set(figure.groups))
    width, height = 340, 260  # of all figures of dots, to compare them side by side
    margin = LARGEST_DOT * min(len(names), 3) + 4, LARGEST_DOT + 16  # dots of several groups lie side by side
    points = np.asarray(figure.points, np.float64)
    finite = np.isfinite(points).all(axis=1)
    if not finite.any():
        return NOTHING
    points, groups = points[finite], [figure.groups[n] for n in np.flatnonzero(finite).tolist()]
    low, high = points.min(axis=0), points.max(axis=0)
    plot_size = np.array([width - 2 * margin[0], height - TOP - 2 * margin[1]])
    extent = np.maximum(high - low, max(0.05 * float((high - low).max()), 1e-12))  # not to enlarge rounding errors
    scale = plot_size / extent
    places = (points - (low + high) / 2) * scale * (1, -1) + (width / 2, TOP + (height - TOP) / 2)
    drawn = [_text(0, 12, figure.up), _text(width / 2, height + 14, figure.across, "middle")]
    drawn += _draw_spots(count_coinciding(places, groups), names)
    left, line = 10.0, 0
    for n, name in enumerate(names):
        wide = 34 + _measure([name])
        if left > 10 and left + wide > width:
            left, line = 10.0, line + 1
        at = height + 36 + 18 * line
        drawn.append(f'<circle cx="{left + 6:.1f}" cy="{at - 4}" r="5" fill="{COLOURS[n % len(COLOURS)]}"/>')
        drawn.append(_text(left + 16, at, name))
        left += wide
    return _frame(width, height + 46 + 18 * line, drawn)


def count_coinciding(places: Float[np.ndarray, "N 2"], groups: Sequence[str]) -> list[tuple[Point, dict[str, int]]]:
    """Return the distinguishable places of a drawing, each with its number of points by group.

    >>> count_coinciding(np.array([[5.0, 5.0], [5.1, 5.0], [90.0, 5.0]]), ["ship", "pear", "ship"])
    [((5.05, 5.0), {'ship': 1, 'pear': 1}), ((90.0, 5.0), {'ship': 1})]
    """
    members: dict[tuple[int, ...], list[int]] = {}
    for n, cell in enumerate(np.round(places / NEAR).astype(int).tolist()):
        members.setdefault(tuple(cell), []).append(n)
    spots = []
    for numbers in members.values():
        x, y = places[numbers].mean(axis=0).tolist()
        spots.append(((x, y), dict(Counter(groups[n] for n in numbers))))
    return spots


def _draw_spots(spots: Sequence[tuple[Point, dict[str, int]]], names: list[str]) -> list[str]:
    """Return dots whose area is the number of points, with one dot per group side by side, and numbers from 5."""
    drawn = []
    for (x, y), counts in spots:
        sizes = {name: min(LARGEST_DOT, 2.5 * math.sqrt(count)) for name, count in sorted(counts.items())}
        left = x - sum(sizes.values())
        for name, radius in sizes.items():
            colour, many = COLOURS[names.index(name) % len(COLOURS)], counts[name] >= COUNTED
            title = f"<title>{html.escape(name)}: {counts[name]}</title>"
            drawn.append(
                f'<circle cx="{left + radius:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" opacity=".7">{title}'
                "</circle>"
            )
            drawn += [_text(left + radius, y - radius - 3, str(counts[name]), "middle")] * many
            left += 2 * radius
    return drawn


def _draw_scatter(figure: Scatter) -> str:
    points = _keep_finite(figure.points)
    if not points:
        return NOTHING
    values = [value for point in points for value in point]
    low, high = min(values), max(values)
    scale = 300 / ((high - low) or 1.0)
    drawn = [f'<line x1="10" y1="330" x2="310" y2="30" stroke="{PALE}"/>', _text(0, 12, figure.up)]
    for x, y in points:
        spot = f'cx="{10 + (x - low) * scale:.1f}" cy="{330 - (y - low) * scale:.1f}"'
        drawn.append(f'<circle {spot} r="2" fill="{INK}" opacity=".5"/>')
    drawn += [_text(10, 348, format_number(low)), _text(310, 348, format_number(high), "end")]
    drawn.append(_text(160, 348, figure.across, "middle"))
    return _frame(320, 354, drawn)


def _draw_grid(figure: Grid) -> str:
    size = 24 if len(figure.columns) <= 12 else 15
    left = max(60.0, _measure(figure.rows) + 12)
    turned = _measure(figure.columns) > size  # long names are written upright
    top = _measure(figure.columns) + 12 if turned else 20.0
    bottom, width = top + size * len(figure.rows), left + size * max(len(figure.columns), 6)
    largest = max(float(np.max(figure.values, initial=0)), 1e-12)
    drawn = []
    for r, row in enumerate(np.clip(figure.values, 0, None).tolist()):
        drawn.append(_text(left - 6, top + (r + 0.65) * size, figure.rows[r], "end"))
        drawn += [
            f'<rect x="{left + c * size:.0f}" y="{top + r * size:.0f}" width="{size - 1}" height="{size - 1}" '
            f'fill="{INK}" fill-opacity="{value / largest:.2f}"><title>{value:.3f}</title></rect>'
            for c, value in enumerate(row)
            if value >= 0.005 * largest  # fainter cells cannot be seen
        ]
    for c, name in enumerate(figure.columns):
        x = left + (c + 0.5) * size
        upright = f'<text transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)">{html.escape(name)}</text>'
        drawn.append(upright if turned else _text(x, 14, name, "middle"))
    step = (width - left - 70) / 5
    for n in range(5):
        place = f'x="{left + n * step:.1f}" y="{bottom + 10:.0f}" width="{step:.1f}" height="10"'
        drawn.append(f'<rect {place} fill="{INK}" fill-opacity="{(n + 1) / 5:.1f}"/>')
    drawn += [_text(left - 6, bottom + 19, "0", "end"), _text(left + 5 * step + 6, bottom + 19, f"{largest:.2g}")]
    return _frame(width, bottom + 28, drawn)


def _draw_arcs(figure: Arcs) -> str:
    row, left = 20, max(40.0, _measure(figure.words)) + 8
    values = np.clip(figure.values, 0, None)
    largest = max(float(values.max(initial=0)), 1e-12)
    single_row = int((values.sum(axis=1) > 0).sum()) == 1
    right = left + 110
    width = right + 8 + max(40.0, _measure(figure.targets)) + 40 * single_row
    drawn = []
    # The strongest lines last, on top of the others.
    for value, r, c in sorted((float(values[r, c]), r, c) for r, c in np.argwhere(values > 0.02 * largest).tolist()):
        share, y, end = value / largest, (r + 0.5) * row, (c + 0.5) * row
        line = f"M{left:.0f} {y:.0f}C{left + 50:.0f} {y:.0f} {right - 50:.0f} {end:.0f} {right:.0f} {end:.0f}"
        drawn.append(
            f'<path d="{line}" fill="none" stroke="{INK}" stroke-width="{1 + 7 * share:.1f}" '
            f'opacity="{0.35 + 0.65 * share:.2f}"><title>{value:.3f}</title></path>'
        )
        if single_row and value >= 0.005:
            drawn.append(_text(width - 4, end + 4, f"{value:.2f}", "end"))
    for r, name in enumerate(figure.words):
        weight = ' font-weight="700"' * (single_row and bool(values[r].any()))
        drawn.append(f"<g{weight}>{_text(left - 6, (r + 0.5) * row + 4, name, 'end')}</g>")
    for c, name in enumerate(figure.targets):
        weight = ' font-weight="700"' * (single_row and c == int(values.sum(axis=0).argmax()))
        drawn.append(f"<g{weight}>{_text(right + 6, (c + 0.5) * row + 4, name)}</g>")
    return _frame(max(width, 200), row * max(len(figure.words), len(figure.targets)) + 4, drawn)


def _draw_panels(figure: Panels) -> str:
    drawn, left, bottom = [], 0.0, 0.0
    for name, figures in figure.columns.items():
        y, wide = 24.0, _measure([name])
        drawn.append(f'<text x="{left:.0f}" y="14" font-size="15" font-weight="700">{html.escape(name)}</text>')
        for panel in figures:
            picture, width, height = measure_svg(panel)
            drawn.append(f'<text x="{left:.0f}" y="{y + 14:.0f}" font-weight="600">{html.escape(panel.title)}</text>')
            drawn.append(f'<svg x="{left:.0f}" y="{y + 24:.0f}" width="{width}" height="{height}" {picture[5:]}')
            y, wide = y + height + 44, max(wide, width, _measure([panel.title]))
        left, bottom = left + wide + 28, max(bottom, y)
    return _frame(left - 28, bottom - 16, drawn)


def measure_svg(figure: Drawable) -> tuple[str, int, int]:
    """Return a figure as SVG, with its width and height; raise for a figure without points."""
    picture = draw_svg(figure)
    box = re.match(r'<svg viewBox="0 0 (\d+) (\d+)"', picture)
    if box is None:
        raise ValueError(f"{figure.title!r} has no points to draw")
    return picture, int(box[1]), int(box[2])


_DRAW: dict[type, Callable[[Any], str]] = {
    Lines: _draw_lines, Curve: _draw_curve, Bars: _draw_bars, Dots: _draw_dots, Scatter: _draw_scatter,
    Grid: _draw_grid, Arcs: _draw_arcs, Panels: _draw_panels,
}  # fmt: skip


def _keep_finite(points: Sequence[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _measure(names: Sequence[str]) -> float:
    return LETTER * max(map(count_columns, names), default=0)


def _pad(values: Sequence[Number], share: float = 0.05) -> Point:
    """Return a range that holds the values, a share wider at both ends; a single value gets a range around it."""
    low, high = min(values), max(values)
    more = share * (high - low) if high > low else max(0.5, 0.05 * abs(low))
    return low - more, high + more


def _polyline(points: Sequence[Point], colour: str, width: int, style: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="{width}"{style} points="{path}"/>'


def _text(x: Number, y: Number, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _frame(width: Number, height: Number, drawn: Sequence[str]) -> str:
    size = f"min-width:{0.8 * width:.0f}px;max-width:{1.2 * width:.0f}px"  # text of 10 to 14 pixels
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="{size}" role="img">{"".join(drawn)}</svg>'
