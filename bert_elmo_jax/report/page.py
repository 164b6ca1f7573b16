"""One HTML file: headings, tables, figures, text. Readable on a phone, and without a network."""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import Drawable, Panels
from bert_elmo_jax.report.korean_phrases import KOREAN
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.report.svg import draw_svg

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--soft:#57606a;--box:#f2f4f6;--rule:#d5dbe1;--link:#0b5cad}
@media(prefers-color-scheme:dark){
:root{--paper:#15181c;--ink:#e4e8ec;--soft:#9ea8b3;--box:#20252b;--rule:#3a424b;--link:#7db9f5}}
body{font:1rem/1.55 system-ui,sans-serif;margin:1.5rem auto;max-width:74rem;padding:0 1rem;color:var(--ink);
background:var(--paper);overflow-wrap:anywhere}
h1,h2,h3{line-height:1.25;margin:1.6rem 0 .6rem}
h2{border-bottom:1px solid var(--rule);padding-bottom:.25rem;margin-top:2.4rem}
p,li{max-width:50rem}
[lang=ko]{word-break:keep-all}
a{color:var(--link)}
.figures{display:flex;flex-wrap:wrap;gap:1.5rem}
figure{margin:0;flex:1 1 20rem;min-width:0;max-width:36rem;overflow-x:auto}
figcaption{font-weight:600}
.panels{display:flex;flex-wrap:wrap;gap:0 2rem;flex-basis:100%}
.panels>div{flex:1 1 18rem;min-width:0;max-width:36rem}
.panels figure{margin-bottom:1rem}
figure p{margin:.2rem 0;color:var(--soft);font-size:.9rem}
svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:currentColor}
pre{overflow:auto;background:var(--box);padding:.75rem;border-radius:.4rem;font-size:.85rem;overflow-wrap:normal}
.scroll{overflow-x:auto;margin-bottom:1rem}
table{border-collapse:collapse;overflow-wrap:normal;font-variant-numeric:tabular-nums}
td,th{padding:.3rem 1.2rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
details{margin:.4rem 0}
.wrapped{white-space:pre-wrap;overflow-wrap:anywhere;line-break:anywhere}
.about code{white-space:nowrap}
.facts{overflow-wrap:anywhere}
.facts th{font-weight:400;color:var(--soft);overflow-wrap:normal}
.score{font-size:1.75rem;font-weight:650;line-height:1.25;margin:.4rem 0}
.about{color:var(--soft);margin:.3rem 0}
@media(max-width:40rem){
.score{font-size:1.4rem}
td,th{padding-right:.8rem}
.stacked,.stacked tbody,.stacked tr,.stacked td{display:block}
.stacked tr:first-child{display:none}
.stacked tr{border-bottom:1px solid var(--rule);padding:.5rem 0}
.stacked td{border:0;padding:.1rem 0;overflow-wrap:anywhere}
.stacked td+td{display:inline-block;margin-right:1.2rem}
.stacked td+td:empty{display:none}
.stacked td+td::before{content:attr(data-name) ": ";color:var(--soft)}}
@media(min-width:100rem){html{font-size:125%}}
"""
WIDE = ("text", "note", KOREAN["text"], KOREAN["note"])  # columns that keep their width on a narrow screen
# For a projector: larger type, and figures as wide as the screen allows. A phone keeps its size: tables would not fit.
STAGE = """
@media(min-width:40rem){html{font-size:150%}}
body{font-size:1rem;max-width:none}
.figures figure{flex:1 1 30rem;max-width:none}
figure svg{max-width:100%!important;max-height:85vh}
"""


def write_page(
    path: str | Path, title: str, sections: Iterable[tuple[str, str]], style: str = "", language: Language = "en"
) -> Path:
    """Write an HTML page; a section is a heading and HTML, an empty heading is left out, `style` is further CSS."""
    parts = [f"<h2>{html.escape(heading)}</h2>{body}" if heading else body for heading, body in sections]
    return write_text(
        path,
        f'<!doctype html><html lang="{language}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}{style}</style>"
        f"<h1>{html.escape(title)}</h1>{''.join(parts)}</html>",
    )


def draw_table(names: Sequence[str], rows: Sequence[Sequence[object]], stacked: bool = False) -> str:
    """Return an HTML table that scrolls on a narrow screen; columns named `text` and `note` keep their width.

    There the cells of a row of a `stacked` table stand below the first one, with their names.
    """
    wide = ' style="min-width:14em"'
    kept = [name in WIDE or (stacked and n == 0 and name != "") for n, name in enumerate(names)]
    head = "".join(f"<th{wide if keep else ''}>{html.escape(name)}</th>" for name, keep in zip(names, kept))

    def draw_cell(column: int, cell: object) -> str:
        label = f' data-name="{html.escape(names[column])}"' if stacked else ""
        return f"<td{label}>{html.escape(str(cell))}</td>"

    body = "".join(f"<tr>{''.join(draw_cell(*cell) for cell in enumerate(row))}</tr>" for row in rows)
    style = ' class="stacked"' if stacked else ""
    return f'<div class="scroll" tabindex="0"><table{style}><tr>{head}</tr>{body}</table></div>'


def draw_facts(facts: Mapping[str, object]) -> str:
    """Return names and values as a table that wraps on a narrow screen."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in facts.items()
    )
    return f'<table class="facts">{rows}</table>'


def draw_figures(figures: Iterable[Drawable]) -> str:
    """Return figures with their titles and notes, side by side where there is room."""
    return f'<div class="figures">{"".join(map(_draw_figure, figures))}</div>'


def _draw_figure(figure: Drawable) -> str:
    caption, note = f"<figcaption>{html.escape(figure.title)}</figcaption>", f"<p>{html.escape(figure.note)}</p>"
    if isinstance(figure, Panels):  # columns that are stacked on a phone
        columns = (
            f"<div><h3>{html.escape(name)}</h3>{''.join(map(_draw_figure, panels))}</div>"
            for name, panels in figure.columns.items()
        )
        return f'<div class="panels">{"".join(columns)}</div>'
    return f"<figure>{caption}{draw_svg(figure)}{note}</figure>"


def draw_code(text: str, wrapped: bool = False) -> str:
    """Return preformatted text, such as a command; long lines are `wrapped`, or scroll."""
    return f"<pre{' class=wrapped' * wrapped}>{html.escape(text)}</pre>"


def draw_json(content: Any) -> str:
    """Return readable JSON as preformatted text."""
    return draw_code(json.dumps(content, indent=1, ensure_ascii=False))


def draw_details(summary: str, body: str) -> str:
    """Return HTML that is hidden until its summary, a text, is clicked."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"
