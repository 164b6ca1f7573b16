"""What a search has found: all its trials, the best first, as a table, as csv and as a page."""

import shlex
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.runs.config_files import shown
from bert_elmo_jax.sweeps.markdown import csv_text
from bert_elmo_jax.sweeps.search.study import trials_of
from bert_elmo_jax.sweeps.search.trials import Search

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
    write_text(search.workdir / "table.md", f"# Search for {search.score}\n\n{text}")
    write_text(search.workdir / "table.csv", csv_text(rows))
    _write_page(search, study, head, cells, rows, command)
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


def _write_page(search: Search, study: Any, head: list[str], cells: list[list[str]], rows: list[dict[str, Any]],
                command: str) -> None:  # fmt: skip
    curve = best_so_far(search, study)
    drawn = draw_figures([Lines("The best so far", "trial", search.score, {"best": curve})] if curve else [])
    trials = "".join(
        draw_details(f"trial {row['trial']}", draw_code(row["command"]) + _link(search.workdir, row["run"]))
        for row in rows
    )
    sections = [("", draw_table(head, cells) + drawn), ("The search", draw_code(command)), ("The trials", trials)]
    write_page(search.workdir / "report.html", f"Search for {search.score}", sections)


def _link(workdir: Path, run: str) -> str:
    there = (workdir / "trials" / run / "report.html").is_file()
    return f'<a href="trials/{run}/report.html">its report</a>' if there else ""


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
