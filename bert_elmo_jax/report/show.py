"""Figures in a notebook: side by side in one SVG, which notebooks, editors and notebook viewers can display."""

import html
import re
from dataclasses import dataclass

from bert_elmo_jax.report.figures import Figure
from bert_elmo_jax.report.results import count_columns
from bert_elmo_jax.report.svg import LETTER, measure_svg

SHEET = 1100  # the largest width of a line of figures
GAP, TITLE = 24, 26
# Inside an image element an SVG has no access to the page's style, so it brings its own fonts, colours and background.
FONTS = "system-ui, 'Noto Sans', 'Noto Sans KR', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Shown:
    """An SVG document, displayed by a notebook if it is the value of a cell.

    >>> Shown("<svg/>")
    an SVG of 6 characters
    """

    document: str

    def __repr__(self) -> str:  # stored in the notebook together with the drawing
        return f"an SVG of {len(self.document):,} characters"

    def _repr_svg_(self) -> str:
        return self.document


def show(*figures: Figure, scale: float = 1.0) -> Shown:
    """Return figures with their titles, from left to right, in as many lines as they need; `scale` enlarges all.

    >>> import numpy as np
    >>> from bert_elmo_jax.report.figures import Dots
    >>> figures = [Dots(word, np.eye(2), ["sense 1", "sense 2"]) for word in ("배", "bank")]
    >>> show(*figures).document.count("<svg")
    3
    """
    if not figures:
        raise ValueError(
            "no figure was given: show(figure, …) takes one or more of Lines, Bars, Dots, Grid, Arcs and Panels"
        )
    drawn, x, y, line, width = [], 0.0, 0.0, 0.0, 0.0
    for figure in figures:
        picture, wide, high = measure_svg(figure)
        shrink = min(1.0, SHEET / wide)
        needed = min(SHEET, max(wide * shrink, LETTER * count_columns(figure.title)))
        if x and x + needed > SHEET:
            x, y, line = 0.0, y + line + GAP, 0.0
        drawn.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" font-weight="600">{html.escape(figure.title)}</text>')
        size = f'width="{wide * shrink:.1f}" height="{high * shrink:.1f}"'
        drawn.append(f'<svg x="{x:.0f}" y="{y + TITLE:.0f}" {size} {picture[5:]}')
        line, width = max(line, TITLE + high * shrink), max(width, x + needed)
        x += needed + GAP
    height = y + line
    return Shown(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{scale * width:.0f}" height="{scale * height:.0f}" role="img" '
        f'viewBox="-8 -8 {width + 16:.0f} {height + 16:.0f}" fill="#222" font-family="{FONTS}" font-size="12">'
        f'<rect x="-8" y="-8" width="100%" height="100%" fill="#fff"/>{_NOT_XML.sub("�", "".join(drawn))}</svg>'
    )
