"""The files of a sweep: `table.md`, `table.csv`, `costs.csv` and `report.html`.

Equal results give byte-identical tables, in any order and by any runner.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.language import Language, Phrase, Translate, translator
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.report.results import write_rows
from bert_elmo_jax.report.svg import NOTHING
from bert_elmo_jax.runs.start_run import read_costs, sum_costs
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import Point
from bert_elmo_jax.sweeps.table import LEVEL, Gain, Order, Score, Table, find_least_difference, list_lines

STYLE = "td,th{white-space:nowrap}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
PAPER_STYLE = "td:nth-child(odd):not(:first-child),th:nth-child(odd):not(:first-child){color:var(--soft)}"


def write_markdown(table: Table) -> str:
    """Return the table and the remarks on it as Markdown."""
    sweep = table.sweep
    head, *rows = list_cells(table)
    scale = f"Scale `{sweep.scale}`. " if sweep.scale else ""
    lines = [f"# {sweep.title}", "", f"{scale}{' '.join(describe_columns(sweep))}", ""]
    lines += [_format_row(head), _format_row(["---"] * len(head)), *map(_format_row, rows), ""]
    lines += [f"- {line}" for line in [*explain_marks(table), *compare_orders(table)]]
    lines += ["", sweep.notes] if sweep.notes else []
    return "\n".join(lines).rstrip() + "\n"


def list_cells(table: Table) -> list[list[str]]:
    """Return the table's head and rows; next to each column are the gains of a path, and the paper's figures."""
    paper = table.sweep.paper
    extra = [Phrase("gain")] * table.sweep.path + [Phrase("paper")] * paper.has_figures
    lines = [["", *(word for column in table.columns for word in (column, *extra))]]
    for row in table.rows:
        line = [Phrase("{row} (reference)", row=row) if row == paper.reference else row]
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
    text = f"{score.mean:.2f}{apart}{' *' if p is not None and p < LEVEL else ''}"
    if score.count == len(score.values):
        return text
    return Phrase("{score} ({count} of {seeds} seeds)", score=text, count=score.count, seeds=len(score.values))


def write_gain(gain: Gain | None) -> str:
    """Return the gain of a step, with its interval in brackets.

    >>> write_gain(Gain(2.0, 2.5)), write_gain(Gain(-1.0, None)), write_gain(None)
    ('+2.00 (-0.50 to +4.50)', '-1.00', '')
    """
    if gain is None:
        return ""
    interval = "" if gain.half is None else f" ({gain.mean - gain.half:+.2f} to {gain.mean + gain.half:+.2f})"
    return f"{gain.mean:+.2f}{interval}"


def describe_columns(sweep: Sweep) -> Iterator[Phrase]:
    """Yield sentences that say what the columns measure."""
    scores = dict.fromkeys(f"{cell.column}: {cell.of}" for cell in sweep.cells)
    seeds = max(len(cell.seeds) for cell in sweep.cells)
    several = Phrase("mean ± standard deviation over {seeds} seeds", seeds=seeds)
    how = several if seeds > 1 else Phrase("one seed")
    yield Phrase("Measured ({how}): {scores}.", how=how, scores="; ".join(scores))
    if sweep.paper.has_figures:
        yield Phrase("The paper's figures: {source}.", source=sweep.paper.source)


def explain_marks(table: Table) -> Iterator[Phrase]:
    """Yield the remarks on what the marks mean."""
    seeds, reference = max(len(cell.seeds) for cell in table.sweep.cells), table.sweep.paper.reference
    if table.sweep.path:
        yield Phrase(
            "A gain is the difference to the row above, with its 95% interval over the seeds (Student's t, paired)."
        )
    compared = [p for row in table.rows for column in table.columns if (p := table.p(row, column)) is not None]
    if seeds < 2:
        yield Phrase("One seed: no test for chance.")
        return
    if not any(row == reference for row, _ in table.scores):
        yield Phrase("No row is marked: the reference row, {row}, has no cells at this scale.", row=reference)
        return
    yield Phrase(
        "\\* differs from the reference row, {row}, by a paired t-test over the seeds (p < {level}, two-sided). "
        "{seeds} seeds detect only large differences: the mean difference must be {least} times the standard deviation "
        "of the differences.", row=reference, level=LEVEL, seeds=seeds, least=f"{find_least_difference(seeds):.2f}",
    )  # fmt: skip
    if table.constant:
        places = "; ".join(f"{row}, {column}" for row, column in table.constant)
        yield Phrase(
            "No test and no mark where all seeds differ by the same from the reference row: {places}.", places=places
        )
    if compared:
        times = Phrase("once") if len(compared) == 1 else Phrase("{count} times", count=len(compared))
        varied = (
            Phrase("Each seed has a pretraining of its own, so the deviations show its variation, too.")
            if varies_pretraining(table.sweep)
            else Phrase(
                "The seeds vary the task only: each row has one pretraining, and they do not show its variation."
            )
        )
        yield Phrase(
            "Compared {times}: {chance} would be marked by chance if no row differed; {marked} are. {varied}",
            times=times, chance=f"{LEVEL * len(compared):.2g}", marked=sum(p < LEVEL for p in compared), varied=varied,
        )  # fmt: skip


def varies_pretraining(sweep: Sweep) -> bool:
    """Return True if no two seeds of a cell begin with the same pretraining, or are the same one."""
    begins = [[name for point in cell.points for name in find_pretrainings(point)] for cell in sweep.cells]
    several = any(len(identities) > 1 for identities in begins)
    return several and all(len(set(identities)) == len(identities) for identities in begins)


def find_pretrainings(point: Point) -> set[str]:
    """Return the identities of the pretrainings that a run begins with, also through other tasks' runs."""
    if point.program == "pretrain":
        return {point.identity}
    begins = [point.beginnings[name] for name in ("init", "encoder", "preset") if name in point.beginnings]
    return {name for begin in begins for name in find_pretrainings(begin)}


def compare_orders(table: Table) -> Iterator[Phrase]:
    """Yield one remark per column: how the order of its rows agrees with the paper's."""
    for column in table.columns:
        order = table.order(column)
        if order.pairs:
            yield Phrase("{column}: {order}", column=column, order=describe_order(order))


def join_phrases(first: Phrase, second: Phrase) -> Phrase:
    """Return two phrases as one, with a semicolon between."""
    return Phrase("{first}; {second}", first=first, second=second)


def describe_order(order: Order) -> Phrase:
    """Describe how the order of rows agrees with the paper's, with the size of every disagreement.

    >>> describe_order(Order(1.0, (), 3))
    "order of rows as the paper's: Kendall's τ = 1.00, all 3 pairs agree."
    """
    if order.tau is None:
        return Phrase("the order of rows says nothing here: all of ours are equal.")
    values = {"tau": f"{order.tau:.2f}", "pairs": order.pairs}
    if not order.against:
        return Phrase("order of rows as the paper's: Kendall's τ = {tau}, all {pairs} pairs agree.", **values)
    notes = []
    for pair in order.against:
        noise = "" if pair.p is None else f", p = {pair.p:.2f}"
        by_chance = Phrase(": within chance") if pair.p is not None and pair.p >= LEVEL else ""
        notes.append(Phrase(
            "{better} > {worse} (paper by {paper}, here {ours}{noise}{by_chance})", better=pair.better,
            worse=pair.worse, paper=f"{pair.paper:.1f}", ours=f"{pair.ours:+.2f}", noise=noise, by_chance=by_chance,
        ))  # fmt: skip
    return Phrase(
        "order of rows as the paper's: Kendall's τ = {tau}, {agree} of {pairs} pairs agree; not so {notes}.", **values,
        agree=order.pairs - len(order.against), notes=reduce(join_phrases, notes),
    )  # fmt: skip


def write_lines(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    """Write lines as CSV that a spreadsheet reads: it recognises UTF-8, and takes no cell for a formula."""
    names = list(lines[0])
    write_rows(path, [names, *([line.get(name) for name in names] for line in lines)], guarded=True)


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
    write_lines(folder / "table.csv", list(list_lines(table)))
    write_lines(folder / "costs.csv", list_costs(table.sweep, folders))


def _format_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def write_sweep_report(table: Table, folders: Folders, folder: Path, command: str, language: Language = "en") -> None:
    """Write the report of all points that are done."""
    sweep, translate = table.sweep, translator(language)
    head, *rows = [
        [translate(cell) if isinstance(cell, Phrase) else cell for cell in line] for line in list_cells(table)
    ]
    means = {place: score.mean for place, score in table.scores.items() if score.mean is not None}
    drawn = ""
    if sweep.plot is not None and means:
        try:
            figure = sweep.plot(means)
            drawn = draw_figures([figure])
            if NOTHING not in drawn:  # the runs of its points are not done
                write_figures(folder, {"figure": figure})
        except Exception as error:  # an error in the sweep's file must not stop its runs
            text = translate("The plot of the sweep's file fails: {error}", error=f"{type(error).__name__}: {error}")
            drawn = f"<p>{html.escape(text, quote=False)}</p>"
    remarks = (translate(line).removeprefix("\\") for line in (*explain_marks(table), *compare_orders(table)))
    items = "".join(f"<li>{html.escape(line)}</li>" for line in remarks)
    costs = list_costs(sweep, folders)
    spent = sum(float(str(line["seconds"])) for line in costs if line["seconds"])
    ready = sum(bool(line["done"]) for line in costs)
    about = [translate("{ready} of {count} runs done.", ready=ready, count=len(costs))]
    if sweep.scale:
        about.insert(0, translate("Scale {scale}.", scale=sweep.scale))
    about += map(translate, describe_columns(sweep))
    total = translate("{seconds} seconds of runs, one after the other. The whole sweep:", seconds=f"{spent:,.0f}")
    sections = [
        ("", f"<p>{html.escape(' '.join(about))}</p>"),
        ("", f"{draw_table(head, rows)}{drawn}<ul>{items}</ul>"),
        ("", f"<p>{html.escape(sweep.notes)}</p>" if sweep.notes else ""),
        (translate("What it cost"), f"<p>{html.escape(total)}</p>"),
        ("", draw_code(command) + "".join(_cost(line, folders, translate) for line in costs)),
        (translate("What it is"), draw_code(sweep.about.strip())),
    ]
    write_page(folder / "report.html", sweep.title, sections, STYLE + PAPER_STYLE * sweep.paper.has_figures, language)


def _cost(line: Mapping[str, object], folders: Folders, translate: Translate) -> str:
    """Return a run's entry: its cell, its cost and device, its command, and a link to its own report."""
    seed = translate("seed {seed}", seed=line["seed"]) if line["seed"] != "" else ""
    column = translate("shared") if line["column"] == "shared" else line["column"]
    title = ", ".join(str(part) for part in (line["row"], column, seed) if part)
    cost = f"{line['seconds']} s" if line["seconds"] else translate("seconds unknown" if line["done"] else "not done")
    again = translate("{count} starts", count=line["starts"]) if int(str(line["starts"])) > 1 else ""
    details = ", ".join(str(part) for part in (cost, line["device"], again) if part)
    page = folders.workdir / "points" / str(line["run"]) / "report.html"
    name = html.escape(translate("its report"))
    link = f'<a href="../points/{html.escape(str(line["run"]))}/report.html">{name}</a>' if page.is_file() else ""
    return draw_details(f"{title}: {details}", draw_code(str(line["command"])) + link)
