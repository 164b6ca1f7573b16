"""Fine-tuning runs: one model for a task, or a grid of them, from the config to the report."""

import copy
import hashlib
import itertools
import re
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.files import write_skipped
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.inference.run_directory import is_run_directory, read_run_directory, write_run_directory
from bert_elmo_jax.report.language import choose_language
from bert_elmo_jax.runs.config_files import parse_values, resolve_name
from bert_elmo_jax.runs.field_ranges import check_field
from bert_elmo_jax.runs.prepared_task import build_task
from bert_elmo_jax.runs.start_run import read_clock, say
from bert_elmo_jax.runs.task_data import Data, parse_share, read_data
from bert_elmo_jax.runs.task_kinds import TaskKind, find_kind
from bert_elmo_jax.runs.trackers import check_trackers
from bert_elmo_jax.runs.train_run import (
    RESULT,
    PageOptions,
    Run,
    SharedBy,
    lock_run,
    place_run,
    start_config,
    train_run,
)
from bert_elmo_jax.runs.with_documents import BACKWARD
from bert_elmo_jax.runs.with_network import ADDED as NETWORK_ADDED

# Fields that may change when a run is resumed: the places of the same data, and what affects speed and comfort only.
FREE = ("train", "dev", "test", "mesh", "log_every", "checkpoint_every", "cache")
# Fields that runs of earlier versions lack, with the values that these had.
ADDED = {
    "transfer": "all", "head_epochs": 1.0, "lora.rank": 8, "lora.alpha": 16.0, "lora.targets": "query,value",
    "lora.rslora": False, "lora.in_full": "", "sentences.both_ways": False, "sentences.widths": "", "on_bad": "stop",
    "documents.pooling": "last+max+mean", **NETWORK_ADDED,
}  # fmt: skip
SKIPPED = "skipped.jsonl"  # in the run directory, with --on_bad=skip
EXAMPLES = "examples.json"  # in the directory of a run or grid: the digests of the examples that it reads
# Fields that say which examples there are, or on which device a run is: the runs of a grid have them in common.
IN_COMMON = (
    "task", "train", "dev", "test", "text", "pair", "label", "encoding", "on_bad", "tag_column", "compute",
)  # fmt: skip
PLACE = ("file", "line", "lines")  # where an example was read
# Fields that are used while the examples are read.
OF_DATA = (
    "share", "context", "stride", "question_length", "longest_answer", "both_orders", "sentences.loss",
    "sentences.top_score",
)  # fmt: skip
OTHER_VECTORS = {"encoder", "max_length", *OF_DATA}  # fields that change an encoder's vectors, or whose they are
RUNS, GRID = "runs", "grid.json"  # in the directory of a grid: the folder of its runs, and their scores
Setting = dict[str, Any]


class TaskJob(NamedTuple):
    """The data of a task, and the model that is trained on them."""

    data: Data
    kind: TaskKind
    start: Any
    parallel: SharedBy


def finetune(
    config: ConfigDict,
    workdir: Path,
    *,
    init: str | None = None,
    tokenizer: str | None = None,
    grid: str | None = None,
    seeds: Sequence[str] | None = None,
    parallel: SharedBy = "jit",
    language: str | None = None,
    command: str = "",
    track: Sequence[str] = (),
) -> int:
    """Start or resume the fine-tuning of a run directory, and return its exit status: 0, or 75 if it was stopped.

    With `grid` or `seeds` there is one run for each combination, and the best on the development data is kept. The
    report is in a `language`, en or ko, by default the locale's, and shows the `command`. `track` names
    trackers: mlflow, wandb.
    """
    began = read_clock()
    page = PageOptions(choose_language(language), command)
    check_trackers(track)
    config = start_config(config)
    settings, kind, workdir = list_settings(config, grid, seeds), find_kind(config), Path(workdir)
    train.refuse_other_files(workdir)
    kind.check(config, settings)
    data = read_data(config)
    start = kind.start(config, init, tokenizer)
    identity = {"program": "finetune", "init": init, "tokenizer": tokenizer, **config.to_dict()}
    if share := parse_share(config.dev):  # with another share, held-out examples would be trained on
        identity["dev_share"] = share
    if settings:
        identity |= {"grid": grid, "seeds": seeds}
    run = Run(workdir, identity, FREE, ADDED, page, tuple(track))
    with lock_run(run, began):
        if data.skipped:
            write_skipped(workdir / SKIPPED, data.skipped)
            say(f"{workdir / SKIPPED}: all rows that are skipped")
        configs = [apply_setting(config, setting, workdir) for setting in settings] or [config]
        start, status = kind.first_stages(config, workdir, data, start, parallel, page.language, configs)
        if status:
            return status
        task = TaskJob(data, kind, start, parallel)
        stopped = run_grid(run, config, task, settings) if settings else run_task(run, config, task)
    return train.STOPPED if stopped else 0


def run_task(run: Run, config: ConfigDict, task: TaskJob) -> int | None:
    """Start or resume one run, and return the number of the signal that stopped it, or None."""
    for name, companion in task.kind.companions(task.start).items():
        folder = run.workdir / name
        if read_result(folder) is None:
            folder.mkdir(exist_ok=True)
            if stopped := run_task(run._replace(workdir=folder), config, task._replace(start=companion)):
                return stopped
    placement = place_run(config, task.parallel)
    report = not is_run_directory(run.workdir)
    prepared = task.kind.prepare(config, task.data, task.start, placement, report)
    trainable = build_task(config, task.data, prepared, placement, task.kind.sections)
    check_examples(run.workdir, task.data, began=not report)
    return train_run(run, placement, trainable)


def run_grid(run: Run, config: ConfigDict, task: TaskJob, settings: Sequence[Setting]) -> int | None:
    """Run all settings that are not done, and return the number of the signal that stopped a run, or None.

    A setting that is refused or diverges has no score: the others are run and compared, and then its error is raised.
    """
    run.check_same()
    folders = [name_folder(run.workdir / RUNS, setting) for setting in settings]
    check_examples(run.workdir, task.data, began=any(map(is_run_directory, folders)))
    results = {folder: result for folder in folders if (result := read_result(folder)) is not None}
    for folder, result in results.items():
        if config.test and "test" not in result:
            raise ValueError(
                f"--test={config.test}: {folder} ended without it, and only the best model is kept: leave --test out "
                f"and score that one, {run.workdir}, or give another --workdir"
            )
    failed: dict[Path, train.Diverged | ValueError] = {}
    for number, (setting, folder) in enumerate(zip(settings, folders), start=1):
        if folder in results:
            continue
        say(f"run {number} of {len(settings)}: {show_folder(folder, run.workdir)}")
        folder.mkdir(parents=True, exist_ok=True)
        setting_config = apply_setting(config, setting, run.workdir)
        setting_run = run._replace(workdir=folder, settings={**run.settings, **setting_config.to_dict()})
        try:
            setting_task = apply_to_task(task, setting, setting_run, setting_config)
            if stopped := run_task(setting_run, setting_config, setting_task):
                return stopped
        except (train.Diverged, ValueError) as error:
            if jax.process_count() > 1:  # the other processes may not have met it: they would wait for this one
                raise
            say(f"run {number} of {len(settings)} failed: {error}")
            failed[folder] = error
        else:
            drop_worse(folders)
    if len(failed) < len(folders):
        finish_grid(run, settings, folders, failed)
    for folder, first_error in failed.items():
        kind = train.Diverged if isinstance(first_error, train.Diverged) else ValueError
        first = f"the first of them {show_folder(folder, run.workdir)}: {first_error}"
        raise kind(f"{len(failed)} of {len(settings)} runs failed, {first}") from first_error
    return None


def name_folder(runs: Path, setting: Setting) -> Path:
    """Return the folder of a setting's run; slashes of a value are quoted, unless an earlier version has not done so.

    >>> name_folder(Path("runs"), {"preset": "../bert", "seed": 0}).as_posix()
    'runs/preset=..%2Fbert,seed=0'
    """
    name = ",".join(f"{field}={value}" for field, value in setting.items())
    unquoted = runs / name
    if unquoted.is_dir() and unquoted.resolve().is_relative_to(runs.resolve()):
        return unquoted
    return runs / re.sub(r"[%/\\]", lambda match: f"%{ord(match[0]):02X}", name)


def show_folder(folder: Path, workdir: Path) -> str:
    """Return the name of a setting's run in the folder of a grid."""
    return folder.relative_to(workdir / RUNS).as_posix()


def list_settings(config: ConfigDict, grid: str | None, seeds: Sequence[str] | None) -> list[Setting]:
    """Return the values of each run's fields; [] without a grid and seeds.

    >>> list_settings(ConfigDict({"epochs": 3.0, "seed": 0}), "epochs=2,3", ["0", "1"])[1]
    {'epochs': 2.0, 'seed': 1}
    """
    texts_of: dict[str, str] = {}
    for part in (grid or "").split():
        name, assigned, texts = part.partition("=")
        if not assigned:
            raise ValueError(f"--grid={grid}: {part} has no values; write {name}=…, with commas between the values")
        if name in texts_of:
            raise ValueError(f"--grid={grid}: {name} is named twice; write all of its values after one =")
        texts_of[name] = texts
    if seeds and "seed" in texts_of:
        raise ValueError("--grid names seed, and --seeds was given: use one of both")
    fields: dict[str, list[Any]] = {}
    try:
        for name, texts in (texts_of | ({"seed": ",".join(seeds)} if seeds else {})).items():
            name = resolve_name(config, name)
            if name in IN_COMMON:
                raise ValueError(f"{name} is the same for all runs, which are compared: start a run for each value")
            fields[name] = parse_values(config, name, texts)
            for value in fields[name]:
                check_field(name, value, "")
    except ValueError as error:
        raise ValueError(f"--{'seeds' if seeds and name == 'seed' else 'grid'}: {error}") from None
    for name, values in fields.items():
        if len(set(values)) < len(values):
            raise ValueError(f"{name} has a value twice: {', '.join(map(str, values))}")
    return [dict(zip(fields, values)) for values in itertools.product(*fields.values())] if fields else []


def apply_setting(config: ConfigDict, setting: Setting, workdir: Path) -> ConfigDict:
    """Return a copy of a config with a setting; runs with the same encoder and sentences share its cached vectors."""
    setting_config = copy.deepcopy(config)
    if "cache" in config and not config.cache and config.encoder and not setting.keys() & OTHER_VECTORS:
        setting_config.cache = str(workdir / "vectors")
    setting_config.update_from_flattened_dict(setting)
    return setting_config


def apply_to_task(task: TaskJob, setting: Setting, run: Run, config: ConfigDict) -> TaskJob:
    """Return the data and the model of a setting, which are read again if it names one of their fields."""
    if any(name in OF_DATA for name in setting):
        task = task._replace(data=read_data(config))
    if any(name in task.kind.start_fields for name in setting):
        task = task._replace(start=task.kind.start(config, run.settings["init"], run.settings["tokenizer"]))
    return task


def check_examples(workdir: Path, data: Data, *, began: bool) -> None:
    """Raise if what `began` in `workdir` has read other examples than these, and keep their digests there.

    The evaluations of a run, and the runs of a grid, are compared, so that they must have the same examples.
    """
    examples_of = {"train": data.train, "dev": data.dev}
    digests = {name: digest_examples(examples) for name, examples in examples_of.items()}
    for name, digest in (read_json(workdir / EXAMPLES, default=digests) if began else digests).items():
        if digest != digests[name]:
            raise ValueError(
                f"the examples of --{name} have changed since {workdir} began: give the same, or another --workdir"
            )
    write_json(workdir / EXAMPLES, digests)


def digest_examples(examples: Sequence[Any]) -> str:
    """Return the SHA-256 of the contents of examples, wherever they come from."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr([value for name, value in vars(example).items() if name not in PLACE]).encode())
    return digest.hexdigest()


def read_result(run: Path) -> dict[str, Any] | None:
    """Return the scores of a finished run, or None."""
    return read_json(run / RESULT) if (run / RESULT).is_file() else None


def find_best(folders: Sequence[Path]) -> Path:
    """Return the first of the finished runs with the highest score on dev."""
    scores: dict[Path, float] = {}
    for folder in folders:
        if (result := read_result(folder)) is not None:
            value = result["dev"][result["score"]]
            scores[folder] = float("-inf") if value is None or value != value else value
    return max(scores, key=lambda folder: scores[folder])


def drop_worse(folders: Sequence[Path]) -> None:
    """Delete the parameters of all finished runs except the best."""
    best = find_best(folders)
    for folder in folders:
        if folder != best and read_result(folder) is not None:
            for part in ("checkpoints", "encoder", "base", "adapter", BACKWARD):
                shutil.rmtree(folder / part, ignore_errors=True)


def finish_grid(
    run: Run,
    settings: Sequence[Setting],
    folders: Sequence[Path],
    failed: Mapping[Path, Exception] = MappingProxyType({}),
) -> None:
    """Write `grid.json`, copy the best model, and report the mean and deviation of each setting's seeds.

    Settings that `failed` have their error instead of scores.
    """
    workdir = run.workdir
    best = find_best(folders)
    best_name = show_folder(best, workdir)
    results = [
        {**setting, **({"failed": str(failed[folder])} if folder in failed else read_result(folder) or {})}
        for setting, folder in zip(settings, folders)
    ]
    if read_json(workdir / GRID, default={}).get("best", best_name) != best_name:  # a setting that had failed is better
        for part in ("checkpoints", "encoder", BACKWARD):
            shutil.rmtree(workdir / part, ignore_errors=True)
        (workdir / "model.json").unlink(missing_ok=True)
    if not is_run_directory(workdir):
        shutil.copyfile(best / "report.html", workdir / "report.html")
        for part in ("encoder", BACKWARD):
            if (best / part).is_dir():
                shutil.copytree(best / part, workdir / part, dirs_exist_ok=True)
        model = read_run_directory(best)
        write_run_directory(
            workdir, model.config, model.params, model.tokenizer, run=run.settings, step=model.step, task=model.task,
            features=model.features, encoder=model.encoder, sentences=model.sentences, average_with=model.average_with,
        )  # fmt: skip
    write_json(workdir / GRID, {"runs": results, "best": best_name})  # last: it names the model that is there
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting, result in zip(settings, results):
        if "score" not in result:
            continue
        name = " ".join(f"{key}={value}" for key, value in setting.items() if key != "seed")
        groups.setdefault(name or "all seeds", []).append(result)
    for name, members in groups.items():
        for part in ("dev", "test"):
            values = [member[part][member["score"]] for member in members if part in member]
            if values:
                say(f"{name}: {part} {members[0]['score']} {show_mean(values)}")
    say(f"{workdir / GRID}: all figures, also in each run's {RESULT}")
    say(f"{workdir} has the model of {best_name}, the best on dev")


def show_mean(values: Sequence[float | None]) -> str:
    """Return the mean and deviation of the scores of seeds; "–" if a score is undefined.

    >>> show_mean([0.5, 0.75]), show_mean([0.5, float("nan")])
    ('0.6250 ± 0.1768 (2 seeds)', '– (undefined for 1 of 2 seeds)')
    """
    defined = [value for value in values if value is not None and value == value]
    if len(defined) < len(values):
        undefined = f" (undefined for {len(values) - len(defined)} of {len(values)} seeds)"
        return f"–{undefined if len(values) > 1 else ''}"
    deviation = f" ± {statistics.stdev(defined):.4f} ({len(defined)} seeds)" if len(defined) > 1 else ""
    return f"{statistics.mean(defined):.4f}{deviation}"
