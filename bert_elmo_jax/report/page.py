"""The page of an analysis: one file with tables and figures, readable anywhere, on a telephone too."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.report.figures import Figure, svg
from bert_elmo_jax.report.results import Result, cells_of
from bert_elmo_jax.report.tables import table
from bert_elmo_jax.train.report import STYLE

MORE = "td:nth-child(4),th:nth-child(4){font-weight:600}q{quotes:none}b{background:#fe9;color:#222}"


def write_page(
    folder: str | Path,
    title: str,
    results: Sequence[Result],
    figures: Sequence[Figure] = (),
    sections: Sequence[tuple[str, str]] = (),
    asked: Mapping[str, Any] | None = None,
) -> Path:
    """Write `report.html`: what came out, figures, other sections, and what was asked.

    >>> import tempfile
    >>> page = write_page(tempfile.mkdtemp(), "probe", [Result("pos", "강", "1", 0.973)])
    >>> "97.3" in page.read_text(encoding="utf-8")
    True
    """
    names, *rows = cells_of(results)
    drawn = "".join(
        f"<figure><figcaption>{html.escape(figure.title)}</figcaption>{svg(figure)}</figure>" for figure in figures
    )
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}{MORE}</style><h1>{html.escape(title)}</h1>"
        f"{table(names, rows) if rows else ''}<main>{drawn}</main>"
        f"{''.join(f'<h2>{html.escape(name)}</h2>{body}' for name, body in sections)}"
        f"<h2>What was asked</h2><pre>{html.escape(json.dumps(asked or {}, indent=1, ensure_ascii=False))}</pre></html>"
    )
    target = Path(folder) / "report.html"
    partial = target.with_suffix(".partial")
    partial.write_text(page, encoding="utf-8")
    return partial.replace(target)
