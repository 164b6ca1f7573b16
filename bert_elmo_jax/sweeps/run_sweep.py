"""One start of a sweep: its points run, what is said meanwhile, and the table that is kept up to date."""

import contextlib
import json
from pathlib import Path

from bert_elmo_jax import train
from bert_elmo_jax.files import write_json
from bert_elmo_jax.sweeps.dashboard import Dashboard
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.forks import Runner
from bert_elmo_jax.sweeps.markdown import write_tables
from bert_elmo_jax.sweeps.page import write_sweep_report
from bert_elmo_jax.sweeps.points import Places, Point
from bert_elmo_jax.sweeps.schedule import State, run_points
from bert_elmo_jax.sweeps.stop_signals import stop_asked
from bert_elmo_jax.sweeps.table import Table, read_table


def run_sweep(sweep: Sweep, places: Places, runner: Runner, retries: int, command: str, where: str) -> int:
    """Run all points that are not done, and keep the table up to date; the exit status."""
    folder, board = places.workdir / sweep.folder, Dashboard(places, runner.slots)
    folder.mkdir(parents=True, exist_ok=True)
    name_dropped(sweep, places, folder, board)
    done = sum(map(places.is_done, sweep.points))
    board.say(
        f"{sweep.title}\n{folder}: {len(sweep.cells)} cells, {len(sweep.points)} points, {done} of them done; "
        f"{runner.slots} at a time on {where}. Stopped at any time, the same command goes on"
    )

    def changed(state: State[Point]) -> Table:
        lost = {name: f"failed: {why}" for name, why in state.failed.items()}
        lost |= {name: f"not run: needs {which}" for name, which in state.blocked.items()}
        table = read_table(sweep, places, lost)
        write_tables(table, places, folder)
        write_sweep_report(table, places, folder, command)
        board.changed(state)
        return table

    with stop_asked() as stop:
        try:
            state = run_points(
                sweep.points, places, runner, retries=retries, changed=changed, tick=board.tick, say=board.say,
                stop=stop,
            )  # fmt: skip
        finally:
            board.close()
    if state.stopping:
        board.say("stopped; the same command goes on from there")
        return train.STOPPED
    table = changed(state)
    board.say((folder / "table.md").read_text(encoding="utf-8"))
    for point in state.points:
        if point.identity in state.failed:
            board.say(
                f"failed: {point.name} ({state.failed[point.identity]}); {places.run(point) / 'log.txt'} says why"
            )
    board.say(f"{folder / 'report.html'}: the table, and of each cell its command and its cost")
    lacking = [place for place, score in table.scores.items() if score.count < len(score.values)]
    for row, column in [] if state.failed else lacking:
        board.say(f"{row}, {column}: {table.scores[row, column].why}")
    return 1 if lacking else 0


def name_dropped(sweep: Sweep, places: Places, folder: Path, board: Dashboard) -> None:
    """Say which runs of an earlier definition this one has no use for; they are left where they are."""
    file, now = folder / "points.json", {places.run(point).name: point.name for point in sweep.points}
    there: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        there = dict(json.loads(file.read_text(encoding="utf-8")))
    for run in sorted(there.keys() - now.keys()):
        board.say(f"{places.workdir / 'points' / run}: no longer a point of this sweep; it is left alone")
    write_json(file, now)
