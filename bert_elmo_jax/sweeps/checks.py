"""What of a sweep can be known to go wrong before any of it runs: data, corpora, fields, and what points begin with.

Each program would say the same of its own run, but behind a pretraining of days.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ml_collections import ConfigDict

from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.task_networks import check_task
from bert_elmo_jax.runs.adaptation import wanted
from bert_elmo_jax.runs.config_files import NAMED, fields_of
from bert_elmo_jax.runs.corpora import corpora_of, tokenizer_of
from bert_elmo_jax.runs.finetuning import lengths_of
from bert_elmo_jax.runs.objectives import objective_of
from bert_elmo_jax.runs.optimisation import choose, learning_rate, optimizer
from bert_elmo_jax.runs.task_data import OPTIONS, Data, class_weights, read_data
from bert_elmo_jax.runs.transfer import WAYS, features_of
from bert_elmo_jax.sweeps.definition import Sweep
from bert_elmo_jax.sweeps.points import File, Places, Point, Step

SEEN = "data.json"  # in the working directory: what its runs have read
CHUNK = 1 << 20


def check_data(sweep: Sweep, places: Places) -> None:
    """Refuse to begin where data are missing; all that is missing is said at once."""
    files = dict.fromkeys(file for point in sweep.points for file in point.files if not file.made)
    if files and places.data is None:
        names = "\n".join(f"  {file.name}" for file in files)
        raise ValueError(f"{sweep.name} at the scale {sweep.scale} needs --data=FOLDER, in which there are\n{names}")
    missing = [file for file in files if not places.file(file).exists()]
    if missing:
        names = "\n".join(f"  {file.name}" for file in missing)
        raise FileNotFoundError(
            f"--data={places.data} lacks\n{names}\nPut them there under these names (links will do), or choose another "
            f"folder; {sweep.name}'s file says what they are."
        )


def check_same_data(sweep: Sweep, places: Places) -> None:
    """Refuse to go on with runs whose data, under the same names, have become others.

    What every run of the working directory reads, and what those have read that it begins with, is kept in a file:
    digests by the run's identity. A file is read again only where its size or its time has changed; of a corpus its
    manifest stands for all.
    """
    reads: dict[str, set[File]] = {}
    for point in sweep.points:  # what is needed comes first
        reads[point.identity] = set(point.files).union(*(reads[need.identity] for need in point.needs))
    seen = places.workdir / SEEN
    with places.locked():
        try:
            known = json.loads(seen.read_text(encoding="utf-8")) if seen.is_file() else {"files": {}, "runs": {}}
            files, runs = dict(known["files"]), dict(known["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{seen} cannot be read ({error!r}): delete it, if the data have not changed") from error
        for file in dict.fromkeys(file for point in sweep.points for file in point.files):
            given = places.file(file)
            path = given / "manifest.json" if given.is_dir() else given
            if not path.is_file():
                continue  # a folder that is no corpus: `check_points` says so
            stamp = [str(path), path.stat().st_size, path.stat().st_mtime_ns]
            if files.get(file.name, {}).get("stamp") != stamp:
                files[file.name] = {"stamp": stamp, "digest": _digest(path)}
            now = files[file.name]["digest"]
            readers = [point for point in sweep.points if file in reads[point.identity]]
            begun = [point for point in readers if places.run(point).is_dir()]
            if others := [point for point in begun if runs.get(point.identity, {}).get(file.name, now) != now]:
                back = (
                    "delete it and it is made again" if file.made else "put the old one back, choose another --workdir"
                )
                listed = "\n".join(f"  {places.run(point)}" for point in others)
                raise ValueError(
                    f"{given} is no longer what {len(others)} runs have read: {back}, or delete them:\n{listed}"
                )
            for point in readers:
                runs[point.identity] = {**runs.get(point.identity, {}), file.name: now}
        write_json(seen, {"files": files, "runs": runs})


def check_points(sweep: Sweep, places: Places) -> None:
    """Refuse what a program would: its corpus, its task's files, its fields, and what it begins with."""
    of = {point.identity: point for point in sweep.points}  # one for all that are the same run
    read: dict[str, Data] = {}  # data that several points have in common
    for point in sweep.points:
        if places.is_done(point):
            continue
        try:
            config = written_config(point, places)
            _check_beginnings(point, places, of)
            if point.program == "finetune":
                key = repr([config.get(name) for name in (*NAMED, *OPTIONS, "share")])
                if key not in read:
                    read[key] = read_data(config)
                _check_finetuning(point, config, read[key])
            else:
                _check_pretraining(point, config)
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{point.name}: {error}") from error


def written_config(point: Point, places: Places) -> ConfigDict:
    """A point's config as its program reads it, with the paths of files and runs."""
    config = point.resolved.copy_and_resolve_references()
    fields = dict(fields_of(config))
    for name, value in point.settings.items():
        if isinstance(value, File | Point | Step) and name in fields:
            config.update_from_flattened_dict({name: places.written(value)})
    return config


def _check_pretraining(point: Point, config: ConfigDict) -> None:
    words = point.program == "pretrain_elmo"
    if config.steps < 1 or config.checkpoint_every < 1 or config.keep < 1:
        raise ValueError(
            f"steps={config.steps}, checkpoint_every={config.checkpoint_every}, keep={config.keep}: expected 1 or more"
        )
    size = config.toyworld.vocab_size  # of a toy world that the run itself makes
    if config.data != "toyworld":
        corpora = corpora_of(config, Path(), "")
        size = tokenizer_of(corpora, words=words).vocab_size
    objective = objective_of(config, size)
    if config.data != "toyworld":
        for phase in objective.phases:
            train_batches(corpora, phase.examples, phase.rows, seed=config.seed, workers=0).close()
    optimizer(config.optimizer, learning_rate(config.optimizer, config.steps, objective.long_steps))


def _check_finetuning(point: Point, config: ConfigDict, data: Data) -> None:
    if config.batch_size < 1:
        raise ValueError(f"config.batch_size={config.batch_size}: expected 1 or more")
    choose("transfer", config.get("transfer", "all"), dict.fromkeys(WAYS))
    steps, _, _ = lengths_of(config, -(-len(data.train) // config.batch_size))
    optimizer(config.optimizer, learning_rate(config.optimizer, steps))
    if "network" in config:
        wanted(config, [])
        check_task(config.network, data.task)
    else:
        class_weights(config.class_weights, data.task, data.train)
        if layers := _layers_of(point):
            features_of(config, BertConfig(num_layers=layers))


def _check_beginnings(point: Point, places: Places, of: Mapping[str, Point]) -> None:
    """That weights which are made here are of the right kind, and will be there."""
    if point.program == "finetune" and "network" not in point.resolved:
        given = {"init", "tokenizer"} & set(point.settings)
        if len(given) != 1:
            raise ValueError("expected init=…, the weights to begin with, or for none tokenizer=…, and one of both")
    elif point.program == "finetune" and (idle := {"init", "tokenizer"} & set(point.settings)):
        raise ValueError(f"{' and '.join(idle)} says nothing to a network, which begins from scratch: use encoder=…")
    for name, value in point.settings.items():
        begin = value.point if isinstance(value, Step) else value
        if not isinstance(begin, Point):
            continue
        takes = _takes(point, name)
        if begin.program not in takes:
            expected = f"one of {' or '.join(takes)}" if takes else "no run"
            raise ValueError(f"{name}={begin.name!r} is a run of {begin.program}, and expected is {expected}")
        if isinstance(value, Step):
            Step(of[begin.identity], value.step)  # which may have been added with another checkpoint_every
        if isinstance(value, Step) and places.is_done(begin):
            folder = places.run(begin) / "checkpoints"
            if not (folder / str(value.step)).is_dir():
                there = ", ".join(sorted((file.name for file in folder.iterdir()), key=len))
                raise ValueError(
                    f"{name}={begin.name!r} after {value.step} steps: {folder} has only {there}. It was made for "
                    "another sweep, with another checkpoint_every or keep: choose another --workdir, or delete it"
                )


def _takes(point: Point, name: str) -> Sequence[str]:
    """The programs whose runs a setting may name."""
    if name not in ("init", "tokenizer", "encoder", "preset"):
        return ()
    if point.program != "finetune":
        return (point.program,)
    if name == "encoder":
        return ("pretrain_elmo",) if point.resolved.adapt.epochs else ("pretrain_elmo", "pretrain_bert")
    return ("pretrain_bert",) if name in ("tokenizer", "preset") else ("pretrain_bert", "finetune")


def _layers_of(point: Point) -> int | None:
    """How many layers the BERT has that a point begins with; None where it is none of this sweep's."""
    while point.program == "finetune":
        begin = point.settings.get("init", point.settings.get("preset"))
        if not isinstance(begin, Point | Step):
            return None
        point = begin.point if isinstance(begin, Step) else begin
    return int(point.resolved.model.num_layers)


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            found.update(part)
    return found.hexdigest()
