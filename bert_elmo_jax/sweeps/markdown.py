"""`table.md` and `table.csv`: the same bytes for the same results, wherever and in which order they were computed."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bert_elmo_jax.files import write_text
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.points import Places
from bert_elmo_jax.sweeps.schedule import facts_of, seconds_of
from bert_elmo_jax.sweeps.table import LEVEL, Order, Score, Table, least_difference, lines_of


def markdown(table: Table) -> str:
    """The table, and all that must be said of it, as Markdown."""
    sweep = table.sweep
    head, *rows = cells_of(table)
    lines = [f"# {sweep.title}", "", f"Scale `{sweep.scale}`. {about(sweep)}", ""]
    lines += [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    lines += [f"- {line}" for line in [*significance(table), *orders(table)]]
    lines += ["", sweep.notes] if sweep.notes else []
    return "\n".join(lines).rstrip() + "\n"


def cells_of(table: Table) -> list[list[str]]:
    """The table's head, and its rows: of every column our figure and the paper's."""
    paper = table.sweep.paper
    found = [["", *(word for column in table.columns for word in (column, "paper"))]]
    for row in table.rows:
        line = [f"{row} (reference)" if row == paper.reference else row]
        for column in table.columns:
            score = table.scores.get((row, column))
            line += ["" if score is None else written(score, table.p(row, column)), _number(paper.figure(row, column))]
        found.append(line)
    return found


def written(score: Score, p: float | None = None) -> str:
    """A cell: mean ± standard deviation, and a mark where it differs from the reference row.

    >>> written(Score((84.0, 85.0)), 0.01), written(Score((84.0, None))), written(Score((None,), "not run: needs bert"))
    ('84.50 ± 0.71 *', '84.00 (1 of 2 seeds)', 'not run: needs bert')
    """
    if score.mean is None:
        return score.why or "–"
    apart = "" if score.deviation is None else f" ± {score.deviation:.2f}"
    few = "" if score.count == len(score.values) else f" ({score.count} of {len(score.values)} seeds)"
    return f"{score.mean:.2f}{apart}{' *' if p is not None and p < LEVEL else ''}{few}"


def about(sweep: Sweep) -> str:
    """What stands in the columns."""
    told = dict.fromkeys(f"{cell.column}: {cell.of}" for cell in sweep.cells)
    seeds = max(len(cell.seeds) for cell in sweep.cells)
    how = f"mean ± standard deviation over {seeds} seeds of the task" if seeds > 1 else "one seed"
    return f"Measured ({how}): {'; '.join(told)}. The paper's figures: {sweep.paper.source}."


def significance(table: Table) -> Iterator[str]:
    """What the marks say, and what they cannot."""
    seeds = max(len(cell.seeds) for cell in table.sweep.cells)
    compared = [p for row in table.rows for column in table.columns if (p := table.p(row, column)) is not None]
    if seeds < 2:
        yield "One seed: nothing can be said about chance."
        return
    if not any(row == table.sweep.paper.reference for row, _ in table.scores):
        yield f"No row is marked: the reference row, {table.sweep.paper.reference}, has no cells at this scale."
        return
    yield (
        f"\\* differs from the reference row, {table.sweep.paper.reference}, by a paired t-test over the seeds "
        f"(p < {LEVEL}, two-sided). {seeds} seeds show only what is large: with so few the mean difference must be "
        f"{least_difference(seeds):.2f} times the standard deviation of the differences."
    )
    if table.constant:
        yield (
            "No test and no mark where all seeds differ by the same from the reference row: "
            + "; ".join(f"{row}, {column}" for row, column in table.constant)
            + "."
        )
    if compared:
        times = "once" if len(compared) == 1 else f"{len(compared)} times"
        yield (
            f"Compared {times}: {LEVEL * len(compared):.2g} would be marked by chance if no row differed; "
            f"{sum(p < LEVEL for p in compared)} are. Seeds are those of the task; the pretraining behind a row is one "
            "run, whose own chance they do not show."
        )


def orders(table: Table) -> Iterator[str]:
    """A line for each column: do its rows lie as the paper's?"""
    for column in table.columns:
        order = table.order(column)
        if order.pairs:
            yield f"{column}: {in_words(order)}"


def in_words(order: Order) -> str:
    """How the order of rows agrees, every disagreement with its size.

    >>> in_words(Order(1.0, (), 3))
    "order of rows as the paper's: Kendall's τ = 1.00, all 3 pairs agree."
    """
    if order.tau is None:
        return "the order of rows says nothing here: all of ours are equal."
    begin = f"order of rows as the paper's: Kendall's τ = {order.tau:.2f}"
    if not order.against:
        return f"{begin}, all {order.pairs} pairs agree."
    told = []
    for pair in order.against:
        noise = "" if pair.p is None else f", p = {pair.p:.2f}" + (": within chance" if pair.p >= LEVEL else "")
        told.append(f"{pair.better} > {pair.worse} (paper by {pair.paper:.1f}, here {pair.ours:+.2f}{noise})")
    return f"{begin}, {order.pairs - len(order.against)} of {order.pairs} pairs agree; not so {'; '.join(told)}."


def csv_text(lines: Sequence[Mapping[str, object]]) -> str:
    """Lines as csv."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in line.items()} for line in lines)
    return out.getvalue()


def costs_of(sweep: Sweep, places: Places) -> list[dict[str, object]]:
    """A line of `costs.csv` for each point, those that cells share first: what it cost, where, and its command."""
    cells = {
        p.identity: (cell.row, cell.column, seed) for cell in sweep.cells for p, seed in zip(cell.points, cell.seeds)
    }
    found: list[dict[str, object]] = []
    for point in sweep.points:
        row, column, seed = cells.get(point.identity, (point.name, "shared", ""))
        facts = facts_of(places.run(point))
        found.append({
            "row": row, "column": column, "seed": seed, "done": places.is_done(point),
            "seconds": round(seconds_of(facts), 1) or None,
            "processor seconds": round(seconds_of(facts, "processor"), 1) or None,
            "starts": len(facts["starts"]),
            "device": facts["device"], "run": places.run(point).name, "command": places.command(point),
        })  # fmt: skip
    return found


def write_tables(table: Table, places: Places, folder: Path) -> None:
    """`table.md`, `table.csv` and, because seconds are never the same twice, apart from them `costs.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "table.md", markdown(table))
    write_text(folder / "table.csv", csv_text(list(lines_of(table))))
    write_text(folder / "costs.csv", csv_text(costs_of(table.sweep, places)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
