"""The results of a search: all trials, the best first, as Markdown, CSV and a page."""

from pathlib import Path
from typing import Any

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.runs.config_files import show_value
from bert_elmo_jax.sweeps.folders import write_command
from bert_elmo_jax.sweeps.markdown import format_csv
from bert_elmo_jax.sweeps.search.study import list_trials
from bert_elmo_jax.sweeps.search.trials import Search

ENDS = {"COMPLETE": "done", "PRUNED": "ended early", "FAIL": "failed", "RUNNING": "not done"}


def list_results(search: Search, study: Any) -> list[dict[str, Any]]:
    """Return one line per trial: finished ones by score, then the others."""
    found = []
    for trial in list_trials(study):
        done = trial.state.name == "COMPLETE"
        found.append({
            "trial": trial.number + 1, search.score: trial.value if done else None, "end": ENDS[trial.state.name],
            "steps": max(search.steps(trial.number), default=None), **trial.params,
            "run": search.run(trial.number).name,
            "command": write_command(search.program, search.job(trial.number, trial.params)),
        })  # fmt: skip
    sign = 1 if search.lowest else -1

    def order(row: dict[str, Any]) -> tuple[bool, float, int]:
        value = row[search.score]
        return value is None, 0.0 if value is None else sign * value, row["trial"]

    return sorted(found, key=order)


def write_results(search: Search, study: Any, command: str) -> str:
    """Write `table.md`, `table.csv` and `report.html`; return the table as Markdown."""
    rows = list_results(search, study)
    if not rows:
        return ""
    head = [name for name in rows[0] if name not in ("run", "command")]
    cells = [[_format_cell(row.get(name)) for name in head] for row in rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *cells))
    write_text(search.workdir / "table.md", f"# Search for {search.score}\n\n{text}")
    write_text(search.workdir / "table.csv", format_csv(rows))
    _write_page(search, study, head, cells, rows, command)
    return text


def track_best(search: Search, study: Any) -> list[tuple[int, float]]:
    """Return the number of each finished trial with the best score up to it."""
    best, found = min if search.lowest else max, list[tuple[int, float]]()
    for trial in list_trials(study):
        if trial.state.name == "COMPLETE":
            found.append((trial.number + 1, best(trial.value, found[-1][1]) if found else trial.value))
    return found


def _write_page(
    search: Search, study: Any, head: list[str], cells: list[list[str]], rows: list[dict[str, Any]], command: str
) -> None:
    curve = track_best(search, study)
    drawn = draw_figures([Lines("The best so far", "trial", search.score, {"best": curve})] if curve else [])
    trials = "".join(
        draw_details(f"trial {row['trial']}", draw_code(row["command"]) + _write_link(search.workdir, row["run"]))
        for row in rows
    )
    sections = [("", draw_table(head, cells) + drawn), ("The search", draw_code(command)), ("The trials", trials)]
    write_page(search.workdir / "report.html", f"Search for {search.score}", sections)


def _write_link(workdir: Path, run: str) -> str:
    there = (workdir / "trials" / run / "report.html").is_file()
    return f'<a href="trials/{run}/report.html">its report</a>' if there else ""


def _format_cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else show_value(value)
