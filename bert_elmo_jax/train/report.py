"""The `report.html` of a run: one self-contained file with a curve for every metric."""

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.train.metrics import read_metrics

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 76, 28
POINTS = 600  # of a curve; more are indistinguishable

# Follows the light or dark setting of the browser; INK and PALE are visible on both.
INK, PALE = "#28a", "#9ab"
STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:74rem;padding:0 1rem}
h1,h2{overflow-wrap:anywhere}
main{display:flex;flex-wrap:wrap;gap:1rem}
figure{margin:0;flex:1 1 22rem;min-width:0}
figcaption{font-weight:600}
svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:currentColor}
pre{overflow:auto;background:#8882;padding:.75rem}
table{border-collapse:collapse;display:block;overflow-x:auto;margin-bottom:1rem}
td,th{padding:.1rem .8rem .1rem 0;text-align:left}
"""


def write_report(run: str | Path, sections: Sequence[tuple[str, str]] = ()) -> Path:
    """Write a page with the curves of `metrics.jsonl`, further `sections` (title and HTML), and `run.json`.

    >>> import tempfile
    >>> from bert_elmo_jax.train.metrics import Metrics
    >>> run = tempfile.mkdtemp()
    >>> with Metrics(run, 0) as metrics:
    ...     metrics.write(1, {"loss": 2.0}); metrics.write(2, {"loss": 1.0})
    >>> write_report(run).read_text(encoding="utf-8").count("<svg")
    1
    """
    folder = Path(run)
    lines = read_metrics(folder)
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.items():
            if name != "step" and value is not None:
                curves.setdefault(name, []).append((float(line["step"]), float(value)))
    # Skip a score that is only the negative of another metric.
    negated = {name: [(step, -value) for step, value in points] for name, points in curves.items()}
    shown = [name for name in curves if curves[name][-1][1] >= 0 or negated[name] not in curves.values()]
    # Held-out metrics first.
    names = sorted(shown, key=lambda name: ("/" not in name, name != "loss", name))
    titles = {name: f"{html.escape(name)}: {number(curves[name][-1][1])}" for name in names}
    figures = "".join(
        f"<figure><figcaption>{titles[name]}</figcaption>{curve(curves[name], name != 'learning_rate')}</figure>"
        for name in names
    )
    asked = folder / "run.json"
    settings = json.loads(asked.read_text(encoding="utf-8")) if asked.is_file() else {}
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(folder.name)}</title><style>{STYLE}</style>"
        f"<h1>{html.escape(folder.name)}</h1><p>{len(lines):,} steps. The thin curve of a figure is every step, "
        f"the thick one a running mean.</p><main>{figures}</main>"
        f"{''.join(f'<h2>{html.escape(title)}</h2>{body}' for title, body in sections)}"
        f"<h2>Configuration</h2><pre>{html.escape(json.dumps(settings, indent=1, ensure_ascii=False))}</pre></html>"
    )
    target = folder / "report.html"
    partial = target.with_suffix(".partial")
    partial.write_text(page, encoding="utf-8")
    partial.replace(target)
    return target


def curve(points: Sequence[tuple[float, float]], noisy: bool = True) -> str:
    """Return an SVG of a metric over the steps; a long and noisy one is drawn with its running mean.

    >>> curve([(1.0, 2.0), (2.0, 1.0)]).startswith("<svg")
    True
    """
    values = [value for _, value in points if math.isfinite(value)]
    if not values:
        return "<p>no finite value</p>"
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1)

    def place(step: float, value: float) -> str:
        x = LEFT + (step - first) / (last - first) * (WIDTH - LEFT - 8)
        y = 8 + (high - value) / (high - low) * (HEIGHT - BOTTOM - 16)
        return f"{x:.1f},{y:.1f}"

    thin = thinned([(step, value) for step, value in points if math.isfinite(value)])
    lines = [(PALE, 1, thin), (INK, 2, smooth(thin))] if noisy and len(thin) > 20 else [(INK, 2, thin)]
    drawn = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{" ".join(place(*p) for p in data)}"/>'
        for colour, width, data in lines
    )
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{float(place(first, v).split(",")[1]) + 4:.0f}" text-anchor="end">{number(v)}</text>'
        for v in (low, (low + high) / 2, high)
    )
    ends = (
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{first:,.0f}</text>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 8}" text-anchor="end">{last:,.0f} steps</text>'
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{drawn}{marks}{ends}</svg>'


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Average neighbours so that at most `POINTS` points remain."""
    size = -(-len(points) // POINTS)
    groups = [points[at : at + size] for at in range(0, len(points), size)]
    return [(sum(s for s, _ in group) / len(group), sum(v for _, v in group) / len(group)) for group in groups]


def smooth(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the running mean over a thirtieth of the curve to either side."""
    reach = max(1, len(points) // 30)
    means = []
    for at, (step, _) in enumerate(points):
        near = points[max(0, at - reach) : at + reach + 1]
        means.append((step, sum(value for _, value in near) / len(near)))
    return means


def number(value: Any) -> str:
    """Format a number with four significant digits.

    >>> number(0.00012345), number(1234567.0), number(39.66)
    ('0.0001234', '1.235e+06', '39.66')
    """
    return f"{value:.4g}"
