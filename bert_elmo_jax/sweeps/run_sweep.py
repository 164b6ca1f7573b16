"""One start of a sweep: check everything that its programs would refuse, run its points, keep its table up to date.

Each program makes the same checks of its own run, but that may be after days of pretraining.
"""

import glob
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.corpora.reading import is_saved_folder
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.families import all_families, get_family
from bert_elmo_jax.files import hash_file, read_json, write_json
from bert_elmo_jax.inference.task_networks import check_task
from bert_elmo_jax.programs import SWEEPS
from bert_elmo_jax.report.language import Language, choose_language
from bert_elmo_jax.runs.adaptation import check_adaptation
from bert_elmo_jax.runs.config_files import NAMED
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule, choose
from bert_elmo_jax.runs.language_model import check_stages
from bert_elmo_jax.runs.pretraining import build_objective, load_corpora
from bert_elmo_jax.runs.task_data import OPTIONS, Data, class_weights, count_steps, read_data
from bert_elmo_jax.runs.trackers import check_trackers
from bert_elmo_jax.runs.transfer import WAYS
from bert_elmo_jax.runs.with_documents import check_documents
from bert_elmo_jax.runs.with_head import read_features
from bert_elmo_jax.sweeps.definition import Sweep, read_sweep
from bert_elmo_jax.sweeps.folders import HASHES, Folders, write_commands
from bert_elmo_jax.sweeps.points import Adapted, File, Point, Step, record_name
from bert_elmo_jax.sweeps.report import write_sweep_report, write_tables
from bert_elmo_jax.sweeps.runners import LOG, Processes, RayTasks, Runner, check_devices, read_resources
from bert_elmo_jax.sweeps.schedule import Progress, SweepState
from bert_elmo_jax.sweeps.table import Table, read_table
from bert_elmo_jax.sweeps.toy_tasks import make_files


def check_data(sweep: Sweep, folders: Folders) -> None:
    """Raise if data are missing, with the names of all that are."""
    files = dict.fromkeys(file for point in sweep.points for file in point.files if not file.made)
    if files and folders.data is None:
        names = "\n".join(f"  {file.name}" for file in files)
        scale = f" at the scale {sweep.scale}" if sweep.scale else ""
        raise ValueError(f"{sweep.name}{scale} needs --data=FOLDER with these files:\n{names}")
    missing = [file for file in files if not folders.file(file).exists()]
    if missing:
        names = "\n".join(f"  {file.name}" for file in missing)
        how = "Put them there (links will do), or choose another folder."
        how += f" {SWEEPS / '_scales.py'} says where to get them." if sweep.scale else ""
        raise FileNotFoundError(f"--data={folders.data} lacks\n{names}\n{how}")


def check_same_data(sweep: Sweep, folders: Folders) -> None:
    """Raise if data have changed since runs of the working directory, or the runs they begin with, have read them.

    These are the files of `--data`, and files and models of this machine that settings name by their paths. They are
    hashed again only if their size or time has changed.
    """
    reads: dict[str, set[File | str]] = {}
    for point in sweep.points:  # needs come first
        reads[point.identity] = set(point.sources()).union(*(reads[need.identity] for need in point.needs))
    record = folders.workdir / HASHES
    with folders.locked():
        try:
            stored = read_json(record, default={"files": {}, "runs": {}})
            files, runs = dict(stored["files"]), dict(stored["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{record} cannot be read ({error!r}): delete it, if the data have not changed") from error
        for source in dict.fromkeys(source for point in sweep.points for source in point.sources()):
            name, places = record_name(source), _find_local(source, folders)
            if not (paths := [path for place in places for path in _list_content(place)]):
                continue  # no data of this machine, or a folder without any, which `check_points` reports
            stamp = [fact for path in paths for fact in (str(path), path.stat().st_size, path.stat().st_mtime_ns)]
            if files.get(name, {}).get("stamp") != stamp:
                digests = [hash_file(path) for path in paths]
                digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
                files[name] = {"stamp": stamp, "digest": digest}
            now = files[name]["digest"]
            readers = [point for point in sweep.points if source in reads[point.identity]]
            begun = [point for point in readers if folders.run(point).is_dir()]
            if outdated := [point for point in begun if runs.get(point.identity, {}).get(name, now) != now]:
                restore = "restore the old file, choose another --workdir"
                remedy = "delete it and it is made again" if isinstance(source, File) and source.made else restore
                listed = "\n".join(f"  {folders.run(point)}" for point in outdated)
                since = f"{', '.join(map(str, places))} has changed since {len(outdated)} runs have read it"
                raise ValueError(f"{since}: {remedy}, or delete them:\n{listed}")
            for point in readers:
                runs[point.identity] = {**runs.get(point.identity, {}), name: now}
        write_json(record, {"files": files, "runs": runs})


def _find_local(source: File | str, folders: Folders) -> list[Path]:
    """Return the files and folders of this machine that a setting names: one, several (`wiki=3,news=1`), or a glob."""
    if isinstance(source, File):
        return [folders.file(source)]
    if os.path.lexists(source):
        return [Path(source)]
    names = (re.sub(r"=[\d.]+$", "", part.strip()) for part in source.split(","))
    patterns = (os.path.expanduser(name) for name in names)  # noqa: PTH111 -- `Path` refuses an unknown user
    return [Path(path) for pattern in patterns for path in sorted(glob.glob(pattern, recursive=True))]


def _list_content(source: Path) -> list[Path]:
    """Return the files that tell whether data have changed; the manifest of a corpus has the hashes of its files."""
    if not source.is_dir():
        return [source] if source.is_file() else []
    if (source / "manifest.json").is_file():
        return [source / "manifest.json"]
    patterns = ["*"]
    if is_saved_folder(source):
        patterns = ["*.arrow", "*.json"]
    elif (source / "checkpoints").is_dir():  # a run directory: its reports may be written again
        patterns = ["model.json", "tokenizer/*", "params/**/*"]
    files = [path for pattern in patterns for path in source.rglob(pattern) if path.is_file()]
    return sorted(path for path in files if not any(part.startswith(".") for part in path.relative_to(source).parts))


def check_points(sweep: Sweep, folders: Folders) -> None:
    """Raise if a program would refuse a point: its corpus, its task's files, its fields, or what it begins with."""
    by_identity = {point.identity: point for point in sweep.points}
    read: dict[str, Data] = {}  # data that several points share
    for point in sweep.points:
        if folders.is_done(point):
            continue
        try:
            config = folders.config(point)
            check_fields(config)
            _check_beginnings(point, folders, by_identity)
            if point.program == "finetune":
                key = repr([config.get(name) for name in (*NAMED, *OPTIONS, "share")])
                if key not in read:
                    read[key] = read_data(config)
                _check_finetuning(point, config, read[key])
            else:
                _check_pretraining(config)
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{point.name}: {error}") from error


def _check_pretraining(config: ConfigDict) -> None:
    train.check_average(config.get("average"), config.keep)
    family, objective = build_objective(config, None)
    if config.data != "toyworld":
        corpora = load_corpora(config, Path(), family.inputs)
        for phase in objective.phases:
            train_batches(corpora, phase.examples, phase.rows, seed=config.seed, workers=0).close()
    build_optimizer(
        config.optimizer, build_schedule(config.optimizer, config.steps, objective.long_steps, objective.width)
    )


def _check_finetuning(point: Point, config: ConfigDict, data: Data) -> None:
    choose("transfer", config.get("transfer", "all"), dict.fromkeys(WAYS))
    steps = count_steps(config, len(data.train)).steps
    build_optimizer(config.optimizer, build_schedule(config.optimizer, steps))
    if "network" in config:
        check_adaptation(config, [])
        check_task(config.network, data.task)
    elif "documents" in config:
        check_stages(config, [])
        check_documents(config, data.task)
    else:
        class_weights(config.class_weights, data.task, data.train)
        if pretrained := _find_pretraining(point):
            family, model = get_family(pretrained.family), pretrained.model
            layers = family.config(vocab_size=family.inputs.vocab_size, **model).num_layers
            read_features(config, family, layers, data.task.kind)


def _check_beginnings(point: Point, folders: Folders, by_identity: Mapping[str, Point]) -> None:
    """Raise unless the runs that a point begins with are of the right kind and keep what it needs."""
    if point.program == "finetune":
        flags = {"init", "tokenizer"} & set(point.settings)
        if "network" in point.resolved and flags:
            why = "has no use for a network, which is trained from scratch: use encoder=…"
            raise ValueError(f"{' and '.join(flags)} {why}")
        if "network" not in point.resolved and len(flags) != 1:
            raise ValueError("expected either init=…, the weights to begin with, or tokenizer=…, to train from scratch")
    for name, begin in point.beginnings.items():
        takes, value = _list_kinds(point, name), point.settings[name]
        kind = _kind_of(value)
        if kind not in takes:
            expected = " or ".join(takes) if takes else "no run"
            raise ValueError(f"{name}={begin.name!r} is a run of {kind}; expected {expected}")
        if isinstance(value, Step):
            Step(by_identity[begin.identity], value.step)  # which may have been added with another checkpoint_every
            folder = folders.run(begin) / "checkpoints"
            if folders.is_done(begin) and not (folder / str(value.step)).is_dir():
                names = ", ".join(sorted((file.name for file in folder.iterdir()), key=len))
                how = "with another checkpoint_every or keep: choose another --workdir, or delete it"
                problem = f"{name}={begin.name!r} after {value.step} steps: {folder} has only {names}"
                raise ValueError(f"{problem}. It was made for another sweep, {how}")


def _list_kinds(point: Point, name: str) -> list[str]:
    """Return the runs that a setting may name: families of pretrainings, or finetune."""
    if point.program == "pretrain":
        teachers = [family.name for family in all_families() if "mlm" in family.heads]
        return {"init": [str(point.resolved.family)], "teacher": teachers}.get(name, [])
    words = [family.name for family in all_families() if family.inputs.adapts]
    if "documents" in point.resolved:
        readers = [family.name for family in all_families() if family.inputs.documents is not None]
        readable = dict.fromkeys(("backward", "tokenizer", "preset"), readers) | {"init": [*readers, "finetune"]}
        return readable.get(name, [])
    pieces = [family.name for family in all_families() if family.inputs.takes_heads]
    if name == "encoder":
        return words if point.resolved.adapt.epochs else [*words, *pieces]
    vectors = [family.name for family in all_families() if "neighbours" in family.objectives]
    return {"init": [*pieces, "finetune"], "tokenizer": pieces, "preset": pieces, "vectors": vectors}.get(name, [])


def _kind_of(value: Any) -> str:
    """Return the kind of the model that a setting names: the family of a language model, or finetune."""
    while isinstance(value, Adapted):
        beginnings, begin = value.point.beginnings, value.point.settings
        value = next((begin[name] for name in ("init", "encoder", "preset") if name in beginnings), value.point)
    point = getattr(value, "point", value)
    return "finetune" if point.program == "finetune" else str(point.resolved.family)


def _find_pretraining(point: Point) -> ConfigDict | None:
    """Return the config of the pretraining that a point begins with; None if it is not of this sweep."""
    while point.program == "finetune":
        begin = point.beginnings.get("init" if "init" in point.settings else "preset")
        if begin is None:
            return None
        point = begin
    return point.resolved


def run_sweep(
    file: str,
    workdir: str,
    *,
    scale: str | None = None,
    data: str | None = None,
    runner: str = "local",
    jobs: int | None = None,
    devices: Sequence[str] = (),
    retries: int = 1,
    address: str | None = None,
    resources: Sequence[str] = (),
    command: str = "",
    track: Sequence[str] = (),
    language: str | None = None,
) -> int:
    """Run all points of a sweep that are not done, and write its table; return the exit status.

    The arguments are the flags of the program `sweep`; `command` is what the report shows as the sweep's command.
    """
    check_places(runner, jobs, devices, address, read_resources(resources))
    check_trackers(track)
    page_language = choose_language(language)
    sweep = read_sweep(file, scale)
    folders = Folders(
        Path(workdir).expanduser().absolute(),
        Path(local_copy(data)).expanduser().absolute() if data else None,
        track=tuple(track),
    )
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
            return run_and_report(sweep, folders, started, retries, command, where, page_language)
        finally:
            started.close()


def check_places(
    runner: str, jobs: int | None, devices: Sequence[str], address: str | None, resources: Mapping[str, float]
) -> None:
    """Raise ValueError for devices that do not exist or cannot be shared evenly, and for flags of another runner."""
    check_devices(devices)
    if devices and jobs is not None and jobs % len(devices):
        raise ValueError(
            f"--jobs={jobs} with --devices={','.join(devices)}: some devices would have more jobs than others; use a "
            f"multiple of {len(devices)}"
        )
    flags: dict[str, Any] = {"--address": address, "--resources": resources} if runner == "local" else {}
    flags |= {"--devices": devices} if runner == "ray" else {}
    if idle := [flag for flag, value in flags.items() if value]:
        other = "ray" if runner == "local" else "local"
        raise ValueError(
            f"{' and '.join(idle)} without effect: --runner={runner} was given; use --runner={other}, or leave it out"
        )


def run_and_report(
    sweep: Sweep, folders: Folders, runner: Runner, retries: int, command: str, where: str,
    language: Language = "en",
) -> int:  # fmt: skip
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
        write_sweep_report(table, folders, folder, command, language)
        progress.changed(state)
        return table

    state = progress.run(sweep.points, runner, retries, write)
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
        stored = read_json(file, default={})
    except (OSError, ValueError):
        stored = {}
    for run in sorted(stored.keys() - now.keys()):
        say(f"{folders.workdir / 'points' / run}: no longer a point of this sweep; it is left alone")
    write_json(file, now)
