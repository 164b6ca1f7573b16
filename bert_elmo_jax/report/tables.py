"""HTML tables."""

import html
from collections.abc import Sequence


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """An HTML table that scrolls by itself where the screen is narrow, and leaves a column of texts its width.

    >>> table(["a"], [["<b>"]])
    '<div style="overflow-x:auto"><table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    >>> table(["text"], []).count("min-width:14em")
    1
    """
    wide = {"text": ' style="min-width:14em"'}
    head = "".join(f"<th{wide.get(name, '')}>{html.escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{body}</table></div>'
