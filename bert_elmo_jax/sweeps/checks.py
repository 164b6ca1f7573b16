"""Checks of a sweep before it runs: its data, corpora, fields, and the runs that its points begin with.

Each program makes the same checks of its own run, but that may be after days of pretraining.
"""

from collections.abc import Mapping
from pathlib import Path

from ml_collections import ConfigDict

from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.families import all_families, get_family
from bert_elmo_jax.files import hash_file, read_json, write_json
from bert_elmo_jax.inference.task_networks import check_task
from bert_elmo_jax.runs.adaptation import wants_adaptation
from bert_elmo_jax.runs.config_files import NAMED
from bert_elmo_jax.runs.initial_state import build_optimizer, build_schedule, choose
from bert_elmo_jax.runs.pretraining import build_objective, load_corpora
from bert_elmo_jax.runs.task_data import OPTIONS, Data, class_weights, count_steps, read_data
from bert_elmo_jax.runs.with_head import WAYS, read_features
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.folders import Folders
from bert_elmo_jax.sweeps.points import File, Point, Step

SEEN = "data.json"  # in the working directory: hashes of the data that its runs have read


def check_data(sweep: Sweep, folders: Folders) -> None:
    """Raise if data are missing, with the names of all that are."""
    files = dict.fromkeys(file for point in sweep.points for file in point.files if not file.made)
    if files and folders.data is None:
        names = "\n".join(f"  {file.name}" for file in files)
        raise ValueError(f"{sweep.name} at the scale {sweep.scale} needs --data=FOLDER with these files:\n{names}")
    missing = [file for file in files if not folders.file(file).exists()]
    if missing:
        names = "\n".join(f"  {file.name}" for file in missing)
        raise FileNotFoundError(
            f"--data={folders.data} lacks\n{names}\nPut them there under these names (links will do), or choose "
            f"another folder; see experiments/sweeps/_scales.py."
        )


def check_same_data(sweep: Sweep, folders: Folders) -> None:
    """Raise if data have changed since runs of the working directory, or the runs they begin with, have read them.

    Files are hashed again only if their size or time has changed; a corpus is represented by its manifest.
    """
    reads: dict[str, set[File]] = {}
    for point in sweep.points:  # needs come first
        reads[point.identity] = set(point.files).union(*(reads[need.identity] for need in point.needs))
    seen = folders.workdir / SEEN
    with folders.locked():
        try:
            known = read_json(seen, default={"files": {}, "runs": {}})
            files, runs = dict(known["files"]), dict(known["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{seen} cannot be read ({error!r}): delete it, if the data have not changed") from error
        for file in dict.fromkeys(file for point in sweep.points for file in point.files):
            given = folders.file(file)
            path = given / "manifest.json" if given.is_dir() else given
            if not path.is_file():
                continue  # a folder without a corpus, which `check_points` reports
            stamp = [str(path), path.stat().st_size, path.stat().st_mtime_ns]
            if files.get(file.name, {}).get("stamp") != stamp:
                files[file.name] = {"stamp": stamp, "digest": hash_file(path)}
            now = files[file.name]["digest"]
            readers = [point for point in sweep.points if file in reads[point.identity]]
            begun = [point for point in readers if folders.run(point).is_dir()]
            if others := [point for point in begun if runs.get(point.identity, {}).get(file.name, now) != now]:
                restore = "restore the old file, choose another --workdir"
                remedy = "delete it and it is made again" if file.made else restore
                listed = "\n".join(f"  {folders.run(point)}" for point in others)
                raise ValueError(
                    f"{given} has changed since {len(others)} runs have read it: {remedy}, or delete them:\n{listed}"
                )
            for point in readers:
                runs[point.identity] = {**runs.get(point.identity, {}), file.name: now}
        write_json(seen, {"files": files, "runs": runs})


def check_points(sweep: Sweep, folders: Folders) -> None:
    """Raise if a program would refuse a point: its corpus, its task's files, its fields, or what it begins with."""
    by_identity = {point.identity: point for point in sweep.points}
    read: dict[str, Data] = {}  # data that several points share
    for point in sweep.points:
        if folders.is_done(point):
            continue
        try:
            config = folders.config(point)
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
    if config.steps < 1 or config.checkpoint_every < 1 or config.keep < 1:
        raise ValueError(
            f"steps={config.steps}, checkpoint_every={config.checkpoint_every}, keep={config.keep}: expected 1 or more"
        )
    family, objective = build_objective(config, None)
    if config.data != "toyworld":
        corpora = load_corpora(config, Path(), family.inputs)
        for phase in objective.phases:
            train_batches(corpora, phase.examples, phase.rows, seed=config.seed, workers=0).close()
    build_optimizer(config.optimizer, build_schedule(config.optimizer, config.steps, objective.long_steps))


def _check_finetuning(point: Point, config: ConfigDict, data: Data) -> None:
    choose("transfer", config.get("transfer", "all"), dict.fromkeys(WAYS))
    steps = count_steps(config, len(data.train)).steps
    build_optimizer(config.optimizer, build_schedule(config.optimizer, steps))
    if "network" in config:
        wants_adaptation(config, [])
        check_task(config.network, data.task)
    else:
        class_weights(config.class_weights, data.task, data.train)
        if pretrained := _find_pretraining(point):
            family, model = get_family(pretrained.family), pretrained.model
            layers = family.config(vocab_size=family.vocab_size, **model).num_layers
            read_features(config, family, layers, data.task.kind)


def _check_beginnings(point: Point, folders: Folders, by_identity: Mapping[str, Point]) -> None:
    """Raise unless the runs that a point begins with are of the right kind and keep what it needs."""
    if point.program == "finetune":
        given = {"init", "tokenizer"} & set(point.settings)
        if "network" in point.resolved and given:
            raise ValueError(
                f"{' and '.join(given)} has no use for a network, which is trained from scratch: use encoder=…"
            )
        if "network" not in point.resolved and len(given) != 1:
            raise ValueError("expected either init=…, the weights to begin with, or tokenizer=…, to train from scratch")
    for name, begin in point.beginnings.items():
        kind = "finetune" if begin.program == "finetune" else str(begin.resolved.family)
        takes, value = _list_kinds(point, name), point.settings[name]
        if kind not in takes:
            expected = " or ".join(takes) if takes else "no run"
            raise ValueError(f"{name}={begin.name!r} is a run of {kind}; expected {expected}")
        if isinstance(value, Step):
            Step(by_identity[begin.identity], value.step)  # which may have been added with another checkpoint_every
            folder = folders.run(begin) / "checkpoints"
            if folders.is_done(begin) and not (folder / str(value.step)).is_dir():
                there = ", ".join(sorted((file.name for file in folder.iterdir()), key=len))
                raise ValueError(
                    f"{name}={begin.name!r} after {value.step} steps: {folder} has only {there}. It was made for "
                    "another sweep, with another checkpoint_every or keep: choose another --workdir, or delete it"
                )


def _list_kinds(point: Point, name: str) -> list[str]:
    """Return the runs that a setting may name: families of pretrainings, or finetune."""
    if point.program == "pretrain":
        return [str(point.resolved.family)] if name == "init" else []
    pieces, words = ([family.name for family in all_families() if family.inputs == inputs]
                     for inputs in ("pieces", "words"))  # fmt: skip
    if name == "encoder":
        return words if point.resolved.adapt.epochs else [*words, *pieces]
    return {"init": [*pieces, "finetune"], "tokenizer": pieces, "preset": pieces}.get(name, [])


def _find_pretraining(point: Point) -> ConfigDict | None:
    """Return the config of the pretraining that a point begins with; None if it is not of this sweep."""
    while point.program == "finetune":
        begin = point.beginnings.get("init" if "init" in point.settings else "preset")
        if begin is None:
            return None
        point = begin
    return point.resolved
