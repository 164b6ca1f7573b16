"""`report.html` of a sweep: the table, the paper's plot, and of each cell its command and its cost; one file."""

import html
from collections.abc import Mapping
from pathlib import Path

from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.sweeps.markdown import about, cells_of, costs_of, orders, significance
from bert_elmo_jax.sweeps.points import Places
from bert_elmo_jax.sweeps.table import Table

STYLE = (
    "td,th{white-space:nowrap}td:nth-child(odd):not(:first-child),th:nth-child(odd):not(:first-child){opacity:.6}"
    ".costs td,.costs th{opacity:1!important}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
)


def write_sweep_report(table: Table, places: Places, folder: Path, command: str) -> None:
    """Write `report.html` of what is done."""
    sweep = table.sweep
    head, *rows = cells_of(table)
    means = {place: score.mean for place, score in table.scores.items() if score.mean is not None}
    drawn = ""
    if sweep.plot is not None and means:
        try:
            drawn = draw_figures([sweep.plot(means)])
        except Exception as error:  # of the sweep's own file: no reason to stop its runs
            drawn = f"<p>The plot of the sweep's file fails: {html.escape(f'{type(error).__name__}: {error}')}</p>"
    said = "".join(
        f"<li>{html.escape(line.removeprefix(chr(92)))}</li>" for line in (*significance(table), *orders(table))
    )
    costs = costs_of(sweep, places)
    spent = sum(float(str(line["seconds"])) for line in costs if line["seconds"])
    ready = sum(bool(line["done"]) for line in costs)
    sections = [
        ("", f"<p>Scale <b>{sweep.scale}</b>: {ready} of {len(costs)} runs done. {html.escape(about(sweep))}</p>"),
        ("", f"{draw_table(head, rows)}{drawn}<ul>{said}</ul>"),
        ("", f"<p>{html.escape(sweep.notes)}</p>" if sweep.notes else ""),
        ("What it cost", f"<p>{spent:,.0f} seconds of runs, one after the other. The whole sweep:</p>"),
        ("", draw_code(command) + "".join(_cost(line, places, folder) for line in costs)),
        ("What it is", draw_code(sweep.about.strip())),
    ]
    write_page(folder / "report.html", sweep.title, sections, STYLE)


def _cost(line: Mapping[str, object], places: Places, folder: Path) -> str:
    """A run: what it is for, what it cost and where, its command, and its own report."""
    what = ", ".join(str(line[name]) for name in ("row", "column") if line[name])
    what += f", seed {line['seed']}" if line["seed"] != "" else ""
    cost = f"{line['seconds']} s" if line["seconds"] else ("seconds unknown" if line["done"] else "not done")
    again = f", {line['starts']} starts" if int(str(line["starts"])) > 1 else ""
    where = f" on {line['device']}" if line["device"] else ""
    there = places.workdir / "points" / str(line["run"]) / "report.html"
    link = f'<a href="../points/{html.escape(str(line["run"]))}/report.html">its report</a>' if there.is_file() else ""
    return draw_details(f"{what}: {cost}{where}{again}", draw_code(str(line["command"])) + link)
