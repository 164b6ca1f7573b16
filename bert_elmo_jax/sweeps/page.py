"""`report.html` of a sweep: the table, its plot, and the command and cost of each run."""

import html
from collections.abc import Mapping
from pathlib import Path

from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.markdown import compare_orders, describe_columns, explain_marks, list_cells, list_costs
from bert_elmo_jax.sweeps.table import Table

STYLE = (
    "td,th{white-space:nowrap}td:nth-child(odd):not(:first-child),th:nth-child(odd):not(:first-child){opacity:.6}"
    ".costs td,.costs th{opacity:1!important}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
)


def write_sweep_report(table: Table, folders: Folders, folder: Path, command: str) -> None:
    """Write the report of all points that are done."""
    sweep = table.sweep
    head, *rows = list_cells(table)
    means = {place: score.mean for place, score in table.scores.items() if score.mean is not None}
    drawn = ""
    if sweep.plot is not None and means:
        try:
            drawn = draw_figures([sweep.plot(means)])
        except Exception as error:  # an error in the sweep's file must not stop its runs
            drawn = f"<p>The plot of the sweep's file fails: {html.escape(f'{type(error).__name__}: {error}')}</p>"
    said = "".join(
        f"<li>{html.escape(line.removeprefix(chr(92)))}</li>"
        for line in (*explain_marks(table), *compare_orders(table))
    )
    costs = list_costs(sweep, folders)
    spent = sum(float(str(line["seconds"])) for line in costs if line["seconds"])
    ready = sum(bool(line["done"]) for line in costs)
    about = f"{ready} of {len(costs)} runs done. {html.escape(describe_columns(sweep))}"
    sections = [
        ("", f"<p>Scale <b>{sweep.scale}</b>: {about}</p>"),
        ("", f"{draw_table(head, rows)}{drawn}<ul>{said}</ul>"),
        ("", f"<p>{html.escape(sweep.notes)}</p>" if sweep.notes else ""),
        ("What it cost", f"<p>{spent:,.0f} seconds of runs, one after the other. The whole sweep:</p>"),
        ("", draw_code(command) + "".join(_cost(line, folders, folder) for line in costs)),
        ("What it is", draw_code(sweep.about.strip())),
    ]
    write_page(folder / "report.html", sweep.title, sections, STYLE)


def _cost(line: Mapping[str, object], folders: Folders, folder: Path) -> str:
    """Return a run's entry: its cell, its cost and device, its command, and a link to its own report."""
    what = ", ".join(str(line[name]) for name in ("row", "column") if line[name])
    what += f", seed {line['seed']}" if line["seed"] != "" else ""
    cost = f"{line['seconds']} s" if line["seconds"] else ("seconds unknown" if line["done"] else "not done")
    again = f", {line['starts']} starts" if int(str(line["starts"])) > 1 else ""
    where = f" on {line['device']}" if line["device"] else ""
    there = folders.workdir / "points" / str(line["run"]) / "report.html"
    link = f'<a href="../points/{html.escape(str(line["run"]))}/report.html">its report</a>' if there.is_file() else ""
    return draw_details(f"{what}: {cost}{where}{again}", draw_code(str(line["command"])) + link)
