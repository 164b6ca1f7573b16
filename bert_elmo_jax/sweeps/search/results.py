"""What a search has found: all its trials, the best first, as a table, as csv and as a page."""

import html
import shlex
from pathlib import Path
from typing import Any

from bert_elmo_jax.report.figures import Lines, svg
from bert_elmo_jax.report.tables import table as html_table
from bert_elmo_jax.runs.config_files import shown
from bert_elmo_jax.sweeps.markdown import csv_text, write_whole
from bert_elmo_jax.sweeps.search.study import trials_of
from bert_elmo_jax.sweeps.search.trials import Search
from bert_elmo_jax.train.report import STYLE

ENDS = {"COMPLETE": "done", "PRUNED": "ended early", "FAIL": "failed", "RUNNING": "not done"}


def rows_of(search: Search, study: Any) -> list[dict[str, Any]]:
    """A line for each trial: those that are done by their score, the others behind them."""
    found = []
    for trial in trials_of(study):
        done = trial.state.name == "COMPLETE"
        words = search.words_of(trial.number, trial.params)
        found.append({
            "trial": trial.number + 1, search.score: trial.value if done else None, "end": ENDS[trial.state.name],
            "steps": max(search.steps(trial.number), default=None), **trial.params,
            "run": search.run(trial.number).name,
            "command": shlex.join(["python", "-m", f"experiments.{search.program}", *words]),
        })  # fmt: skip
    sign = 1 if search.lowest else -1

    def order(row: dict[str, Any]) -> tuple[bool, float, int]:
        value = row[search.score]
        return value is None, 0.0 if value is None else sign * value, row["trial"]

    return sorted(found, key=order)


def write_results(search: Search, study: Any, command: str) -> str:
    """Write `table.md`, `table.csv` and `report.html`; the first of them as text."""
    rows = rows_of(search, study)
    if not rows:
        return ""
    head = [name for name in rows[0] if name not in ("run", "command")]
    cells = [[_cell(row.get(name)) for name in head] for row in rows]
    lines = [head, ["---"] * len(head), *cells]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
    write_whole(search.workdir / "table.md", f"# Search for {search.score}\n\n{text}")
    write_whole(search.workdir / "table.csv", csv_text(rows))
    write_whole(search.workdir / "report.html", _page(search, study, head, cells, rows, command))
    return text


def best_so_far(search: Search, study: Any) -> list[tuple[int, float]]:
    """The best score after each trial that is done."""
    found: list[tuple[int, float]] = []
    for trial in trials_of(study):
        if trial.state.name == "COMPLETE":
            best = [value for _, value in found[-1:]]
            found.append((trial.number + 1, min(*best, trial.value) if search.lowest else max(*best, trial.value))
                         if best else (trial.number + 1, trial.value))  # fmt: skip
    return found


def _page(search: Search, study: Any, head: list[str], cells: list[list[str]], rows: list[dict[str, Any]],
          command: str) -> str:  # fmt: skip
    curve = best_so_far(search, study)
    figure = Lines("The best so far", "trial", search.score, {"best": curve}) if curve else None
    drawn = f"<figure><figcaption>{figure.title}</figcaption>{svg(figure)}</figure>" if figure else ""
    commands = "".join(
        f"<details><summary>trial {row['trial']}</summary><pre>{html.escape(row['command'])}</pre>"
        f"{_link(search.workdir, row['run'])}</details>"
        for row in rows
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Search for {html.escape(search.score)}</title><style>{STYLE}</style>"
        f"<h1>Search for {html.escape(search.score)}</h1>{html_table(head, cells)}{drawn}"
        f"<h2>The search</h2><pre>{html.escape(command)}</pre><h2>The trials</h2>{commands}</html>"
    )


def _link(workdir: Path, run: str) -> str:
    there = (workdir / "trials" / run / "report.html").is_file()
    return f'<a href="trials/{run}/report.html">its report</a>' if there else ""


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
