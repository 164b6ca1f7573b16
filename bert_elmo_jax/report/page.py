"""One HTML file: headings, tables, figures, text. Readable on a phone, and without a network."""

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import Drawable
from bert_elmo_jax.report.svg import draw_svg

STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:74rem;padding:0 1rem}
h1,h2{overflow-wrap:anywhere}
main{display:flex;flex-wrap:wrap;gap:1rem}
figure{margin:0;flex:1 1 22rem;min-width:0;max-width:36rem}
figcaption{font-weight:600}
svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:currentColor}
pre{overflow:auto;background:#8882;padding:.75rem}
table{border-collapse:collapse;display:block;overflow-x:auto;margin-bottom:1rem}
td,th{padding:.1rem .8rem .1rem 0;text-align:left}
details{margin:.4rem 0}
"""


def write_page(path: str | Path, title: str, sections: Iterable[tuple[str, str]], style: str = "") -> Path:
    """Write an HTML page; a section is a heading and HTML, an empty heading is left out, `style` is further CSS."""
    parts = [f"<h2>{html.escape(heading)}</h2>{body}" if heading else body for heading, body in sections]
    return write_text(
        path,
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}{style}</style>"
        f"<h1>{html.escape(title)}</h1>{''.join(parts)}</html>",
    )


def draw_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table that scrolls on a narrow screen; a column named `text` keeps its width."""
    wide = {"text": ' style="min-width:14em"'}
    head = "".join(f"<th{wide.get(name, '')}>{html.escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{body}</table></div>'


def draw_figures(figures: Iterable[Drawable]) -> str:
    """Return figures with their titles, side by side where there is room."""
    drawn = (f"<figure><figcaption>{html.escape(one.title)}</figcaption>{draw_svg(one)}</figure>" for one in figures)
    return f"<main>{''.join(drawn)}</main>"


def draw_code(text: str) -> str:
    """Return preformatted text, such as a command."""
    return f"<pre>{html.escape(text)}</pre>"


def draw_json(content: Any) -> str:
    """Return readable JSON as preformatted text."""
    return draw_code(json.dumps(content, indent=1, ensure_ascii=False))


def draw_details(summary: str, body: str) -> str:
    """Return HTML that is hidden until its summary, a text, is clicked."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"
