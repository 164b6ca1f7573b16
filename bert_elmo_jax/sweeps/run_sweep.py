"""One start of a sweep: check it, run its points, and keep its table up to date."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bert_elmo_jax import train
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.sweeps.checks import check_data, check_points, check_same_data
from bert_elmo_jax.sweeps.definition import Sweep, read_sweep
from bert_elmo_jax.sweeps.folders import Folders, write_commands
from bert_elmo_jax.sweeps.processes import LOG, Processes, Runner, stop_asked
from bert_elmo_jax.sweeps.ray_runner import RayTasks, read_resources
from bert_elmo_jax.sweeps.report import write_sweep_report, write_tables
from bert_elmo_jax.sweeps.schedule import Progress, SweepState, run_points
from bert_elmo_jax.sweeps.table import Table, read_table
from bert_elmo_jax.sweeps.toy_tasks import make_files


def run_sweep(
    file: str,
    workdir: str,
    *,
    scale: str = "toy",
    data: str | None = None,
    runner: str = "local",
    jobs: int | None = None,
    devices: Sequence[str] = (),
    retries: int = 1,
    address: str | None = None,
    resources: Sequence[str] = (),
    command: str = "",
) -> int:
    """Run all points of a sweep that are not done, and write its table; return the exit status.

    The arguments are the flags of `experiments.sweep`; `command` is what the report shows as the sweep's command.
    """
    for name, given, least in (("jobs", jobs, 1), ("retries", retries, 0)):
        if given is not None and given < least:
            raise ValueError(f"--{name}={given}: expected {least} or more")
    sweep = read_sweep(file, scale)
    folders = Folders(Path(workdir).expanduser().absolute(), Path(data).expanduser().absolute() if data else None)
    check_data(sweep, folders)
    make_files(folders.workdir / "tasks", [file for point in sweep.points for file in point.files if file.made])
    check_same_data(sweep, folders)
    check_points(sweep, folders)
    if runner == "print":
        print(write_commands(sweep, folders, command))
        return 0
    with train.only_process(folders.workdir / sweep.folder):
        started: Runner
        if runner == "ray":
            started, where = RayTasks(address, read_resources(resources), jobs, folders.workdir), "a Ray cluster"
        else:
            started = Processes(jobs or max(1, len(devices)), devices, folders.workdir / "compiled")
            where = f"devices {', '.join(devices)}" if devices else "this machine"
        try:
            return run_and_report(sweep, folders, started, retries, command, where)
        finally:
            started.close()


def run_and_report(sweep: Sweep, folders: Folders, runner: Runner, retries: int, command: str, where: str) -> int:
    """Run all points that are not done, and write the table whenever one ends; return the exit status."""
    folder, progress = folders.workdir / sweep.folder, Progress(folders, runner.slots)
    folder.mkdir(parents=True, exist_ok=True)
    report_dropped(sweep, folders, folder, progress.say)
    done = sum(map(folders.is_done, sweep.points))
    progress.say(
        f"{sweep.title}\n{folder}: {len(sweep.cells)} cells, {len(sweep.points)} points, {done} of them done; "
        f"{runner.slots} at a time on {where}. Stop it at any time: the same command continues"
    )

    def write(state: SweepState) -> Table:
        lost = {name: f"failed: {why}" for name, why in state.failed.items()}
        lost |= {name: f"not run: needs {which}" for name, which in state.blocked.items()}
        table = read_table(sweep, folders, lost)
        write_tables(table, folders, folder)
        write_sweep_report(table, folders, folder, command)
        progress.changed(state)
        return table

    with stop_asked() as stop:
        try:
            state = run_points(
                sweep.points, folders, runner, retries=retries, changed=write, tick=progress.tick, say=progress.say,
                stop=stop,
            )  # fmt: skip
        finally:
            progress.close()
    if state.stopping:
        progress.say("stopped; the same command continues")
        return train.STOPPED
    table = write(state)
    progress.say((folder / "table.md").read_text(encoding="utf-8"))
    for point in state.points:
        if point.identity in state.failed:
            progress.say(f"failed: {point.name} ({state.failed[point.identity]}); see {folders.run(point) / LOG}")
    progress.say(f"{folder / 'report.html'}: the table, and the command and cost of each run")
    lacking = [place for place, score in table.scores.items() if score.count < len(score.values)]
    for row, column in [] if state.failed else lacking:
        progress.say(f"{row}, {column}: {table.scores[row, column].why}")
    return 1 if lacking else 0


def report_dropped(sweep: Sweep, folders: Folders, folder: Path, say: Callable[[str], object]) -> None:
    """Name the runs of an earlier definition that this one no longer uses; they are kept."""
    file, now = folder / "points.json", {folders.run(point).name: point.name for point in sweep.points}
    try:
        there = read_json(file, default={})
    except (OSError, ValueError):
        there = {}
    for run in sorted(there.keys() - now.keys()):
        say(f"{folders.workdir / 'points' / run}: no longer a point of this sweep; it is left alone")
    write_json(file, now)
