"""Fine-tuning runs: an encoder with a task head, or a task network, from the config to the report."""

import contextlib
import copy
import itertools
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax import load, train
from bert_elmo_jax.analysis.layer_weights import layer_shares
from bert_elmo_jax.compilation_cache import share_compiled
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches
from bert_elmo_jax.files import read_json, write_json
from bert_elmo_jax.inference.run_directory import best_step, is_run_directory, read_run_directory, write_run_directory
from bert_elmo_jax.inference.task_model import Predictor
from bert_elmo_jax.runs.adaptation import adapt_encoder, wants_adaptation
from bert_elmo_jax.runs.config_files import parse_values, resolve_name
from bert_elmo_jax.runs.data_facts import describe_files, draw_data
from bert_elmo_jax.runs.field_ranges import check_field, check_fields
from bert_elmo_jax.runs.initial_state import apply_compute, remark_warmup
from bert_elmo_jax.runs.language_model import check_stages, describe_stages, tune_language_models
from bert_elmo_jax.runs.start_run import cost_kept, keep_freed_memory, say
from bert_elmo_jax.runs.task_data import Data, parse_share, read_data
from bert_elmo_jax.runs.task_report import figures_of, remark_one_answer, score_name, task_sections
from bert_elmo_jax.runs.with_documents import BACKWARD, DocumentStart, prepare_documents, start_documents
from bert_elmo_jax.runs.with_head import Start, prepare_head, start_head
from bert_elmo_jax.runs.with_network import ADDED as NETWORK_ADDED
from bert_elmo_jax.runs.with_network import NetworkStart, prepare_network, start_network
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.metrics import read_metrics

# Fields that may change when a run is resumed: the places of the same data, and what affects speed and comfort only.
FREE = ("train", "dev", "test", "mesh", "log_every", "checkpoint_every", "cache")
# Fields that runs of earlier versions lack, with the values that these had.
ADDED = {"transfer": "all", "head_epochs": 1.0, **NETWORK_ADDED}
RESULT = "result.json"  # in the directory of a finished run; written last
Setting = dict[str, Any]
AnyStart = Start | NetworkStart | DocumentStart


def finetune(
    config: ConfigDict,
    workdir: Path,
    *,
    init: str | None = None,
    tokenizer: str | None = None,
    grid: str | None = None,
    seeds: Sequence[str] | None = None,
) -> int:
    """Start or resume the fine-tuning of a run directory, and return its exit status: 0, or 75 if it was stopped.

    With `grid` or `seeds` there is one run for each combination, and the best on the development data is kept.
    """
    check_fields(config)
    keep_freed_memory()
    config = apply_compute(config)
    settings, workdir = list_settings(config, grid, seeds), Path(workdir)
    train.refuse_other_files(workdir)
    adapt = wants_adaptation(config, settings)
    if "documents" in config:
        check_stages(config, settings)
    data = read_data(config)
    start = start_any(config, init, tokenizer)
    asked = {"program": "finetune", "init": init, "tokenizer": tokenizer, **config.to_dict()}
    if share := parse_share(config.dev):  # with another share, held-out examples would be trained on
        asked["dev_share"] = share
    if settings:
        asked |= {"grid": grid, "seeds": seeds}
    with train.only_process(workdir), cost_kept(workdir):
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE, ADDED)
        share_compiled()
        if adapt and isinstance(start, NetworkStart):
            start, status = adapt_encoder(config, workdir, data, start)
            if status:
                return status
        if isinstance(start, DocumentStart):
            start, status = tune_language_models(config, workdir, data, start)
            if status:
                return status
        own = config, workdir, data, start, asked
        stopped = run_grid(*own, settings) if settings else run(*own)
    return train.STOPPED if stopped else 0


def start_any(config: ConfigDict, init: str | None, tokenizer: str | None) -> AnyStart:
    """Return the model of a config: one with a task head, a classifier of documents, or a task network."""
    if "documents" in config:
        return start_documents(config, init, tokenizer)
    return (start_network if "network" in config else start_head)(config, init, tokenizer)


def run_grid(
    config: ConfigDict, workdir: Path, data: Data, start: AnyStart, asked: Mapping[str, Any], settings: list[Setting]
) -> int | None:
    """Run all settings that are not done, and return the number of the signal that stopped a run, or None."""
    train.same_run(workdir, asked, FREE, ADDED)
    names = (",".join(f"{name}={value}" for name, value in setting.items()) for setting in settings)
    folders = [workdir / "runs" / name for name in names]
    for number, (setting, folder) in enumerate(zip(settings, folders), start=1):
        if read_result(folder) is not None:
            continue
        say(f"run {number} of {len(settings)}: {folder.name}")
        folder.mkdir(parents=True, exist_ok=True)
        own = apply_setting(config, setting, workdir)
        if stopped := run(own, folder, data, start, {**asked, **own.to_dict()}):
            return stopped
        drop_worse(folders)
    finish_grid(workdir, settings, folders, asked)
    return None


def run(config: ConfigDict, workdir: Path, data: Data, start: AnyStart, asked: Mapping[str, Any]) -> int | None:
    """Start or resume one run, and return the number of the signal that stopped it, or None."""
    if isinstance(start, DocumentStart) and start.other is not None and read_result(workdir / BACKWARD) is None:
        (workdir / BACKWARD).mkdir(exist_ok=True)
        stopped = run(config, workdir / BACKWARD, data, start.other, asked)
        if stopped is not None:
            return stopped
    # The model, its data and the step.
    if isinstance(start, DocumentStart):
        ready = prepare_documents(config, data, start, report=not is_run_directory(workdir))
    elif isinstance(start, Start):
        ready = prepare_head(config, data, start, report=not is_run_directory(workdir))
    else:
        ready = prepare_network(config, data, start)
    steps, _, eval_every, checkpoint_every = ready.length
    score = f"dev/{score_name(ready.task)}"
    train.Patience(score, config.patience)  # raises for a wrong config before anything is written
    step = ready.finish(train.make_step(ready.loss, ready.method, ready.coefficients, accumulate=config.accumulate))
    mesh = train.make_mesh(**config.mesh)
    share = mesh.shape["data"] * mesh.shape["fsdp"]
    if config.batch_size % (unit := share * config.accumulate):
        how = f"cannot be shared by {share} devices in {config.accumulate} parts: use a multiple of {unit}"
        raise ValueError(f"config.batch_size={config.batch_size} {how}")
    state = train.new_state(ready.params, ready.method, jax.random.key(config.seed), ready.carry)
    parallel = train.over_mesh(step, state, mesh, (*ready.sharding, *train.RULES))
    train.same_run(workdir, asked, FREE, ADDED)
    remarks = remark_warmup(config.optimizer, steps)
    for remark in remarks:
        say(remark)
    rows = f"{steps:,} steps of {config.batch_size:,} rows ({len(ready.rows):,} are an epoch)"
    say(f"{workdir}: {ready.task.name}, {rows}, on {describe_devices()}")
    collate, predict = ready.begin(workdir)
    even = isinstance(collate, PackedBatches)
    batches = TaskBatches(ready.rows, config.batch_size, config.seed, collate, even=even)

    def put(batch: Mapping[str, np.ndarray]) -> Any:
        return parallel.put(batch) if len(next(iter(batch.values()))) % share == 0 else batch

    def evaluate(state: train.State) -> dict[str, float]:
        figures = figures_of(ready.task, data.dev, predict(state.params, put))
        return {f"dev/{name}": value for name, value in figures.items()}

    # The loop.
    with train.Checkpoints(workdir, keep=1) as checkpoints:
        checkpoints.discard_unfinished()
        state, found = train.restore(checkpoints, state, parallel)
        lines: list[dict[str, Any]] = []
        if found is not None:
            for line in found.damaged:
                say(line)
            batches.restore(found.facts["position"])
            say(f"resuming from step {found.step:,}")
            lines = [line for line in read_metrics(workdir) if line["step"] <= found.step]
        patience = train.Patience(score, config.patience, lines)
        if patience.spent:  # the run has stopped early
            steps = 0
        with contextlib.closing(batches):
            state, stopped = train.train(
                state, parallel, batches, run=workdir, checkpoints=checkpoints, evaluate=evaluate, score=score,
                schedule=train.Schedule(
                    steps, config.log_every, eval_every, checkpoint_every, config.stop_after_failures
                ),
                size=ready.size, enough=patience,
                extra=jax.jit(lambda step: {"learning_rate": ready.rate(step - 1)}), report=say,
            )  # fmt: skip
    if stopped is None:
        files = describe_files({part: config[part] for part in ("train", "dev", "test")})
        finish(workdir, data, config.batch_size, files, remarks)
    return stopped


def finish(workdir: Path, data: Data, batch_size: int, files: Mapping[str, Any], remarks: Sequence[str] = ()) -> None:
    """Score the model that is best on dev, in batches of the compiled size; write the report, then `result.json`."""
    model = load(workdir)
    assert isinstance(model, Predictor)
    predictions = model.predict_examples(data.dev, batch_size=batch_size)
    figures = {"dev": figures_of(model.task, data.dev, predictions)}
    if data.test:
        figures["test"] = figures_of(model.task, data.test, model.predict_examples(data.test, batch_size=batch_size))
    alone = remark_one_answer(model.task, data.dev, predictions)
    for remark in alone:
        say(remark)
    sections = [*task_sections(model, data.dev, predictions, figures), *describe_stages(workdir), draw_data(files)]
    report = train.write_report(workdir, sections, [*remarks, *alone])
    mixed = {place: shares.tolist() for place, shares in layer_shares(model.params).items()}
    shares = {"layer_shares": mixed} if mixed else {}
    write_json(
        workdir / RESULT,
        {"step": best_step(workdir), "score": score_name(model.task), **figures, **shares, "data": files},
    )
    for part, values in figures.items():
        say(f"{part}: {', '.join(f'{name} {value:.4f}' for name, value in values.items())}")
    say(f"{report}: the curves of this run, and its mistakes")


def list_settings(config: ConfigDict, grid: str | None, seeds: Sequence[str] | None) -> list[Setting]:
    """Return the values of each run's fields; [] without a grid and seeds."""
    given = {name: texts for name, _, texts in (part.partition("=") for part in (grid or "").split())}
    if seeds and "seed" in given:
        raise ValueError("--grid names seed, and --seeds was given: use one of both")
    fields: dict[str, list[Any]] = {}
    try:
        for name, texts in (given | ({"seed": ",".join(seeds)} if seeds else {})).items():
            name = resolve_name(config, name)
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
    """Return a copy of a config with a setting; all runs with the same encoder share its cached vectors."""
    own = copy.deepcopy(config)
    if "cache" in own and not own.cache and own.encoder and "encoder" not in setting:
        own.cache = str(workdir / "vectors")
    own.update_from_flattened_dict(setting)
    return own


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
            for part in ("checkpoints", "encoder", BACKWARD):
                shutil.rmtree(folder / part, ignore_errors=True)


def finish_grid(workdir: Path, settings: Sequence[Setting], folders: Sequence[Path], asked: Mapping[str, Any]) -> None:
    """Write `grid.json`, report the mean and deviation of each setting's seeds, and copy the best model."""
    best = find_best(folders)
    results = [{**setting, **(read_result(folder) or {})} for setting, folder in zip(settings, folders)]
    write_json(workdir / "grid.json", {"runs": results, "best": best.name})
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting, result in zip(settings, results):
        name = " ".join(f"{key}={value}" for key, value in setting.items() if key != "seed")
        groups.setdefault(name or "all seeds", []).append(result)
    for name, members in groups.items():
        for part in ("dev", "test"):
            values = [member[part][member["score"]] for member in members if part in member]
            if values:
                deviation = f" ± {statistics.stdev(values):.4f} ({len(values)} seeds)" if len(values) > 1 else ""
                say(f"{name}: {part} {members[0]['score']} {statistics.mean(values):.4f}{deviation}")
    say(f"{workdir / 'grid.json'}: all figures, also in each run's {RESULT}")
    if not is_run_directory(workdir):
        shutil.copyfile(best / "report.html", workdir / "report.html")
        for part in ("encoder", BACKWARD):
            if (best / part).is_dir():
                shutil.copytree(best / part, workdir / part, dirs_exist_ok=True)
        model = read_run_directory(best)
        write_run_directory(
            workdir, model.config, model.params, model.tokenizer, run=asked, step=model.step, task=model.task,
            features=model.features, encoder=model.encoder, sentences=model.sentences, average_with=model.average_with,
        )  # fmt: skip
    say(f"{workdir} has the model of {best.name}, the best on dev")
