"""`report.html` of a sweep: the table, its plot, and the command and cost of each run."""

import html
from collections.abc import Mapping
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import svg
from bert_elmo_jax.report.tables import table as html_table
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.markdown import compare_orders, describe_columns, explain_marks, list_cells, list_costs
from bert_elmo_jax.sweeps.table import Table
from bert_elmo_jax.train.report import STYLE

MORE = (
    "td,th{white-space:nowrap}td:nth-child(odd):not(:first-child),th:nth-child(odd):not(:first-child){opacity:.6}"
    "details{margin:.4rem 0}.costs td,.costs th{opacity:1!important}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "figure{max-width:36rem}"
)


def write_sweep_report(table: Table, folders: Folders, folder: Path, command: str) -> None:
    """Write the report of all points that are done."""
    sweep = table.sweep
    head, *rows = list_cells(table)
    means = {place: score.mean for place, score in table.scores.items() if score.mean is not None}
    drawn = ""
    if sweep.plot is not None and means:
        try:
            figure = sweep.plot(means)
            drawn = f"<figure><figcaption>{html.escape(figure.title)}</figcaption>{svg(figure)}</figure>"
        except Exception as error:  # an error in the sweep's file must not stop its runs
            drawn = f"<p>The plot of the sweep's file fails: {html.escape(f'{type(error).__name__}: {error}')}</p>"
    said = "".join(
        f"<li>{html.escape(line.removeprefix(chr(92)))}</li>"
        for line in (*explain_marks(table), *compare_orders(table))
    )
    costs = list_costs(sweep, folders)
    spent = sum(float(str(line["seconds"])) for line in costs if line["seconds"])
    ready = sum(bool(line["done"]) for line in costs)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(sweep.title)}</title><style>{STYLE}{MORE}</style><h1>{html.escape(sweep.title)}</h1>"
        f"<p>Scale <b>{sweep.scale}</b>: {ready} of {len(costs)} runs done. {html.escape(describe_columns(sweep))}</p>"
        f"{html_table(head, rows)}{drawn}<ul>{said}</ul>{f'<p>{html.escape(sweep.notes)}</p>' if sweep.notes else ''}"
        f"<h2>What it cost</h2><p>{spent:,.0f} seconds of runs, one after the other. The whole sweep:</p>"
        f"<pre>{html.escape(command)}</pre>{''.join(_cost(line, folders, folder) for line in costs)}"
        f"<h2>What it is</h2><pre>{html.escape(sweep.about.strip())}</pre></html>"
    )
    write_text(folder / "report.html", page)


def _cost(line: Mapping[str, object], folders: Folders, folder: Path) -> str:
    """Return a run's entry: its cell, its cost and device, its command, and a link to its own report."""
    what = ", ".join(str(line[name]) for name in ("row", "column") if line[name])
    what += f", seed {line['seed']}" if line["seed"] != "" else ""
    cost = f"{line['seconds']} s" if line["seconds"] else ("seconds unknown" if line["done"] else "not done")
    again = f", {line['starts']} starts" if int(str(line["starts"])) > 1 else ""
    where = f" on {line['device']}" if line["device"] else ""
    there = folders.workdir / "points" / str(line["run"]) / "report.html"
    link = f'<a href="../points/{html.escape(str(line["run"]))}/report.html">its report</a>' if there.is_file() else ""
    return (
        f"<details><summary>{html.escape(what)}: {html.escape(cost + where + again)}</summary>"
        f"<pre>{html.escape(str(line['command']))}</pre>{link}</details>"
    )
