"""The files of a sweep: `table.md`, `table.csv`, `costs.csv` and `report.html`.

Equal results give byte-identical tables, in any order and by any runner.
"""

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.runs.start_run import read_costs, sum_costs
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.table import LEVEL, Gain, Order, Score, Table, find_least_difference, list_lines

STYLE = "td,th{white-space:nowrap}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
PAPER_STYLE = "td:nth-child(odd):not(:first-child),th:nth-child(odd):not(:first-child){color:var(--soft)}"


def write_markdown(table: Table) -> str:
    """Return the table and the remarks on it as Markdown."""
    sweep = table.sweep
    head, *rows = list_cells(table)
    scale = f"Scale `{sweep.scale}`. " if sweep.scale else ""
    lines = [f"# {sweep.title}", "", f"{scale}{describe_columns(sweep)}", ""]
    lines += [_format_row(head), _format_row(["---"] * len(head)), *map(_format_row, rows), ""]
    lines += [f"- {line}" for line in [*explain_marks(table), *compare_orders(table)]]
    lines += ["", sweep.notes] if sweep.notes else []
    return "\n".join(lines).rstrip() + "\n"


def list_cells(table: Table) -> list[list[str]]:
    """Return the table's head and rows; next to each column are the gains of a path, and the paper's figures."""
    paper = table.sweep.paper
    extra = ["gain"] * table.sweep.path + ["paper"] * paper.has_figures
    lines = [["", *(word for column in table.columns for word in (column, *extra))]]
    for row in table.rows:
        line = [f"{row} (reference)" if row == paper.reference else row]
        for column in table.columns:
            score, figure = table.scores.get((row, column)), paper.figure(row, column)
            line.append("" if score is None else write_cell(score, table.p(row, column)))
            if table.sweep.path:
                line.append(write_gain(table.gain(row, column)))
            if paper.has_figures:
                line.append("" if figure is None else f"{figure:g}")
        lines.append(line)
    return lines


def write_cell(score: Score, p: float | None = None) -> str:
    """Return a cell's text: mean ± standard deviation, and a mark if it differs from the reference row.

    >>> (write_cell(Score((84.0, 85.0)), 0.01), write_cell(Score((84.0, None))))
    ('84.50 ± 0.71 *', '84.00 (1 of 2 seeds)')
    """
    if score.mean is None:
        return score.why or "–"
    apart = "" if score.deviation is None else f" ± {score.deviation:.2f}"
    few = "" if score.count == len(score.values) else f" ({score.count} of {len(score.values)} seeds)"
    return f"{score.mean:.2f}{apart}{' *' if p is not None and p < LEVEL else ''}{few}"


def write_gain(gain: Gain | None) -> str:
    """Return the gain of a step, with its interval in brackets.

    >>> write_gain(Gain(2.0, 2.5)), write_gain(Gain(-1.0, None)), write_gain(None)
    ('+2.00 (-0.50 to +4.50)', '-1.00', '')
    """
    if gain is None:
        return ""
    interval = "" if gain.half is None else f" ({gain.mean - gain.half:+.2f} to {gain.mean + gain.half:+.2f})"
    return f"{gain.mean:+.2f}{interval}"


def describe_columns(sweep: Sweep) -> str:
    """Return a sentence that says what the columns measure."""
    scores = dict.fromkeys(f"{cell.column}: {cell.of}" for cell in sweep.cells)
    seeds = max(len(cell.seeds) for cell in sweep.cells)
    how = f"mean ± standard deviation over {seeds} seeds of the task" if seeds > 1 else "one seed"
    paper = f" The paper's figures: {sweep.paper.source}." if sweep.paper.has_figures else ""
    return f"Measured ({how}): {'; '.join(scores)}.{paper}"


def explain_marks(table: Table) -> Iterator[str]:
    """Yield the remarks on what the marks mean."""
    seeds = max(len(cell.seeds) for cell in table.sweep.cells)
    if table.sweep.path:
        yield "A gain is the difference to the row above, with its 95% interval over the seeds (Student's t, paired)."
    compared = [p for row in table.rows for column in table.columns if (p := table.p(row, column)) is not None]
    if seeds < 2:
        yield "One seed: no test for chance."
        return
    if not any(row == table.sweep.paper.reference for row, _ in table.scores):
        yield f"No row is marked: the reference row, {table.sweep.paper.reference}, has no cells at this scale."
        return
    yield (
        f"\\* differs from the reference row, {table.sweep.paper.reference}, by a paired t-test over the seeds "
        f"(p < {LEVEL}, two-sided). {seeds} seeds detect only large differences: the mean difference must be "
        f"{find_least_difference(seeds):.2f} times the standard deviation of the differences."
    )
    if table.constant:
        places = "; ".join(f"{row}, {column}" for row, column in table.constant)
        yield f"No test and no mark where all seeds differ by the same from the reference row: {places}."
    if compared:
        times = "once" if len(compared) == 1 else f"{len(compared)} times"
        varied = (
            "Each seed has a pretraining of its own, so the deviations show its variation, too."
            if varies_pretraining(table.sweep)
            else "The seeds vary the task only: each row has one pretraining, and they do not show its variation."
        )
        yield (
            f"Compared {times}: {LEVEL * len(compared):.2g} would be marked by chance if no row differed; "
            f"{sum(p < LEVEL for p in compared)} are. {varied}"
        )


def varies_pretraining(sweep: Sweep) -> bool:
    """Return True if no two seeds of a cell begin with the same pretraining."""
    begins = [[need.identity for point in cell.points for need in point.needs] for cell in sweep.cells]
    return any(begins) and all(len(set(identities)) == len(identities) for identities in begins)


def compare_orders(table: Table) -> Iterator[str]:
    """Yield one remark per column: how the order of its rows agrees with the paper's."""
    for column in table.columns:
        order = table.order(column)
        if order.pairs:
            yield f"{column}: {describe_order(order)}"


def describe_order(order: Order) -> str:
    """Describe how the order of rows agrees with the paper's, with the size of every disagreement.

    >>> describe_order(Order(1.0, (), 3))
    "order of rows as the paper's: Kendall's τ = 1.00, all 3 pairs agree."
    """
    if order.tau is None:
        return "the order of rows says nothing here: all of ours are equal."
    begin = f"order of rows as the paper's: Kendall's τ = {order.tau:.2f}"
    if not order.against:
        return f"{begin}, all {order.pairs} pairs agree."
    notes = []
    for pair in order.against:
        noise = "" if pair.p is None else f", p = {pair.p:.2f}" + (": within chance" if pair.p >= LEVEL else "")
        notes.append(f"{pair.better} > {pair.worse} (paper by {pair.paper:.1f}, here {pair.ours:+.2f}{noise})")
    return f"{begin}, {order.pairs - len(order.against)} of {order.pairs} pairs agree; not so {'; '.join(notes)}."


def format_csv(lines: Sequence[Mapping[str, object]]) -> str:
    """Return lines as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in line.items()} for line in lines)
    return out.getvalue()


def list_costs(sweep: Sweep, folders: Folders) -> list[dict[str, object]]:
    """Return one line of `costs.csv` per point: its cost, its device and its command."""
    pairs = ((cell, point, seed) for cell in sweep.cells for point, seed in zip(cell.points, cell.seeds))
    cells = {point.identity: (cell.row, cell.column, seed) for cell, point, seed in pairs}
    rows: list[dict[str, object]] = []
    for point in sweep.points:
        row, column, seed = cells.get(point.identity, (point.name, "shared", ""))
        run = folders.run(point)
        starts = read_costs(run)
        rows.append({
            "row": row, "column": column, "seed": seed, "done": folders.is_done(point),
            "seconds": round(sum_costs(run), 1) or None,
            "processor seconds": round(sum_costs(run, "processor"), 1) or None,
            "starts": len(starts), "device": next((start["device"] for start in starts[::-1] if start["device"]), ""),
            "run": run.name, "command": folders.command(point),
        })  # fmt: skip
    return rows


def write_tables(table: Table, folders: Folders, folder: Path) -> None:
    """Write `table.md`, `table.csv`, and `costs.csv`, which is different each time."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "table.md", write_markdown(table))
    write_text(folder / "table.csv", format_csv(list(list_lines(table))))
    write_text(folder / "costs.csv", format_csv(list_costs(table.sweep, folders)))


def _format_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def write_sweep_report(table: Table, folders: Folders, folder: Path, command: str) -> None:
    """Write the report of all points that are done."""
    sweep = table.sweep
    head, *rows = list_cells(table)
    means = {place: score.mean for place, score in table.scores.items() if score.mean is not None}
    drawn = ""
    if sweep.plot is not None and means:
        try:
            figure = sweep.plot(means)
            drawn = draw_figures([figure])
            write_figures(folder, {"figure": figure})
        except Exception as error:  # an error in the sweep's file must not stop its runs
            drawn = f"<p>The plot of the sweep's file fails: {html.escape(f'{type(error).__name__}: {error}')}</p>"
    remarks = (line.removeprefix("\\") for line in (*explain_marks(table), *compare_orders(table)))
    items = "".join(f"<li>{html.escape(line)}</li>" for line in remarks)
    costs = list_costs(sweep, folders)
    spent = sum(float(str(line["seconds"])) for line in costs if line["seconds"])
    ready = sum(bool(line["done"]) for line in costs)
    about = f"{ready} of {len(costs)} runs done. {html.escape(describe_columns(sweep))}"
    sections = [
        ("", f"<p>{f'Scale <b>{html.escape(sweep.scale)}</b>: ' if sweep.scale else ''}{about}</p>"),
        ("", f"{draw_table(head, rows)}{drawn}<ul>{items}</ul>"),
        ("", f"<p>{html.escape(sweep.notes)}</p>" if sweep.notes else ""),
        ("What it cost", f"<p>{spent:,.0f} seconds of runs, one after the other. The whole sweep:</p>"),
        ("", draw_code(command) + "".join(_cost(line, folders, folder) for line in costs)),
        ("What it is", draw_code(sweep.about.strip())),
    ]
    write_page(folder / "report.html", sweep.title, sections, STYLE + PAPER_STYLE * sweep.paper.has_figures)


def _cost(line: Mapping[str, object], folders: Folders, folder: Path) -> str:
    """Return a run's entry: its cell, its cost and device, its command, and a link to its own report."""
    seed = f"seed {line['seed']}" if line["seed"] != "" else ""
    title = ", ".join(str(part) for part in (line["row"], line["column"], seed) if part)
    cost = f"{line['seconds']} s" if line["seconds"] else ("seconds unknown" if line["done"] else "not done")
    again = f", {line['starts']} starts" if int(str(line["starts"])) > 1 else ""
    where = f" on {line['device']}" if line["device"] else ""
    page = folders.workdir / "points" / str(line["run"]) / "report.html"
    link = f'<a href="../points/{html.escape(str(line["run"]))}/report.html">its report</a>' if page.is_file() else ""
    return draw_details(f"{title}: {cost}{where}{again}", draw_code(str(line["command"])) + link)
