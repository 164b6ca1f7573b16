"""Fine-tuning runs: an encoder with a task head, or a task network, from the config to the report."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax import load, train
from bert_elmo_jax.analysis.layer_weights import layer_shares
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.run_directory import best_step, is_run_directory
from bert_elmo_jax.inference.task_model import TaskModel
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.runs import adaptation
from bert_elmo_jax.runs.freed_memory import keep_freed_memory
from bert_elmo_jax.runs.start_cost import cost_kept
from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.runs.task_data import Data, read_data, share_of
from bert_elmo_jax.runs.task_report import task_sections
from bert_elmo_jax.runs.task_scores import figures_of, score_name
from bert_elmo_jax.runs.transfer import Start, start_of
from bert_elmo_jax.runs.with_head import prepare_head
from bert_elmo_jax.runs.with_network import NetworkStart, network_start, prepare_network
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.metrics import read_metrics

# What may be another when a run goes on: where the same data lie, and what changes speed and comfort only.
FREE = ("train", "dev", "test", "mesh", "log_every", "checkpoint_every", "cache")
RESULT = "result.json"  # written last: the run is done


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
    from bert_elmo_jax.runs.grid import run_grid, settings_of

    keep_freed_memory()
    settings, workdir = settings_of(config, grid, seeds), Path(workdir)
    adapt = adaptation.wanted(config, settings)
    data = read_data(config)
    start: Start | NetworkStart = (network_start if "network" in config else start_of)(config, init, tokenizer)
    asked = {"program": "finetune", "init": init, "tokenizer": tokenizer, **config.to_dict()}
    if share := share_of(config.dev):  # another share would train on examples that were kept aside
        asked["dev_share"] = share
    if settings:
        asked |= {"grid": grid, "seeds": seeds}
    with train.only_process(workdir), cost_kept(workdir):
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE)
        if jax.config.values["jax_compilation_cache_dir"] is None:  # unless JAX_COMPILATION_CACHE_DIR names another
            jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
        if adapt and isinstance(start, NetworkStart):
            start, status = adaptation.adapted(config, workdir, data, start)
            if status:
                return status
        if settings:
            stopped = run_grid(config, workdir, data, start, asked, settings)
        else:
            stopped = run(config, workdir, data, start, asked)
    return train.STOPPED if stopped else 0


def run(
    config: ConfigDict, workdir: Path, data: Data, start: Start | NetworkStart, asked: Mapping[str, Any]
) -> int | None:
    """One start of a run, whatever is in its directory; the signal that stopped it, if one did."""
    if isinstance(start, Start):
        ready = prepare_head(config, data, start, begins=not is_run_directory(workdir))
    else:
        ready = prepare_network(config, data, start)
    if config.batch_size < 1:
        raise ValueError(f"config.batch_size={config.batch_size}: expected 1 or more")
    epoch = -(-len(ready.rows) // config.batch_size)
    steps, eval_every, checkpoint_every = lengths_of(config, epoch)
    rate, method = ready.method(steps, epoch)
    score = f"dev/{score_name(ready.task)}"
    train.Patience(score, config.patience)  # what cannot be meant is said before anything is written
    step = train.make_step(ready.loss, method, ready.coefficients, accumulate=config.accumulate)
    mesh = train.make_mesh(**config.mesh)
    share = mesh.shape["data"] * mesh.shape["fsdp"]
    if config.batch_size % (share * config.accumulate):
        raise ValueError(
            f"config.batch_size={config.batch_size} cannot be shared by {share} devices in {config.accumulate} parts: "
            f"use a multiple of {share * config.accumulate}"
        )
    state = train.new_state(ready.params, method, jax.random.key(config.seed))
    parallel = train.over_mesh(step, state, mesh, (*ready.sharding, *train.RULES))
    train.same_run(workdir, asked, FREE)
    rows = f"{steps:,} steps of {config.batch_size:,} rows ({len(ready.rows):,} are an epoch)"
    say(f"{workdir}: {ready.task.name}, {rows}, on {describe_devices()}")
    collate, predict = ready.begin(workdir)
    batches = TaskBatches(ready.rows, config.batch_size, config.seed, collate)

    def put(batch: Mapping[str, np.ndarray]) -> Any:
        return parallel.put(batch) if len(next(iter(batch.values()))) % share == 0 else batch

    def evaluate(state: train.State) -> dict[str, float]:
        figures = figures_of(ready.task, data.dev, predict(state.params, put))
        return {f"dev/{name}": value for name, value in figures.items()}

    with train.Checkpoints(workdir, keep=1) as checkpoints:
        checkpoints.discard_unfinished()
        state, found = train.restore(checkpoints, state, parallel)
        lines: list[dict[str, Any]] = []
        if found is not None:
            for line in found.damaged:
                say(line)
            batches.restore(found.facts["position"])
            say(f"going on from step {found.step:,}")
            lines = [line for line in read_metrics(workdir) if line["step"] <= found.step]
        patience = train.Patience(score, config.patience, lines)
        if patience.spent:
            steps = 0  # it has ended early
        with contextlib.closing(batches):
            state, stopped = train.train(
                state, parallel, batches, run=workdir, checkpoints=checkpoints, evaluate=evaluate, score=score,
                schedule=train.Schedule(
                    steps, config.log_every, eval_every, checkpoint_every, config.stop_after_failures
                ),
                size=ready.size, enough=patience,
                extra=lambda step: {"learning_rate": float(rate(step - 1))}, report=say,
            )  # fmt: skip
    if stopped is None:
        finish(workdir, data, config.batch_size)
    return stopped


def lengths_of(config: ConfigDict, epoch: int) -> tuple[int, int, int]:
    """Steps in all, from evaluation to evaluation, and from checkpoint to checkpoint."""
    steps = round(config.epochs * epoch)
    eval_every = config.eval_every or epoch
    checkpoint_every = config.checkpoint_every or eval_every
    if steps < 1 or min(eval_every, checkpoint_every) < 1:
        raise ValueError(f"config.epochs={config.epochs} of {epoch} steps is no step at all: use more epochs")
    if eval_every % checkpoint_every:
        raise ValueError(
            f"an evaluation every {eval_every} steps and a checkpoint every {checkpoint_every}: the best could not be "
            "kept; let config.checkpoint_every divide config.eval_every (by itself an epoch)"
        )
    return steps, eval_every, checkpoint_every


def finish(workdir: Path, data: Data, batch_size: int) -> None:
    """The best model on the dev data, scored and shown; `result.json` comes last.

    Batches are of the run's size: those shapes have been compiled for.
    """
    model = load(workdir)
    assert isinstance(model, TaskModel | TaskNetwork)
    predictions = model.predict_examples(data.dev, batch_size=batch_size)
    figures = {"dev": figures_of(model.task, data.dev, predictions)}
    if data.test:
        figures["test"] = figures_of(model.task, data.test, model.predict_examples(data.test, batch_size=batch_size))
    report = train.write_report(workdir, task_sections(model, data.dev, predictions, figures))
    # Where the model mixes an encoder's layers: how much of each it takes.
    mixed = {place: shares.tolist() for place, shares in layer_shares(model.params).items()}
    shares = {"layer_shares": mixed} if mixed else {}
    write_json(workdir / RESULT, {"step": best_step(workdir), "score": score_name(model.task), **figures, **shares})
    for part, values in figures.items():
        say(f"{part}: {', '.join(f'{name} {value:.4f}' for name, value in values.items())}")
    say(f"{report}: the curves of this run, and its mistakes")


def result_of(workdir: Path) -> dict[str, Any] | None:
    """What a finished run scored; None of one that is not."""
    file = workdir / RESULT
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
