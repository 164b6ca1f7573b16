"""Conversion of weights between formats, and the mean of a run's last checkpoints."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax import optim
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.sentence_files import (
    refuse_decoder_states,
    without_pooler,
    write_reranker_files,
    write_sentence_files,
)
from bert_elmo_jax.files import read_json, stage_folder, write_bytes, write_sums
from bert_elmo_jax.heads.sentence_head import NAME, SentenceHead
from bert_elmo_jax.inference.adapter_files import read_adapted
from bert_elmo_jax.inference.load_model import quantise_model
from bert_elmo_jax.inference.model_kinds import find_kind
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.released_task import find_task
from bert_elmo_jax.inference.run_directory import check_finite, is_run_directory, write_run_directory
from bert_elmo_jax.nn.int8_kernels import is_int8
from bert_elmo_jax.text import Tokenizer
from bert_elmo_jax.train.checkpoint import load_params, saved_steps
from bert_elmo_jax.weights.digest import digest
from bert_elmo_jax.weights.hub import check_path
from bert_elmo_jax.weights.parameter_tree import Report


def convert(
    source: str,
    target: str | Path,
    *,
    to_format: str | None = None,
    average: int = 1,
    format: str | None = None,
    classifier: str | None = None,
    lowercase: bool | None = None,
    verify: bool = False,
    untrusted: bool = False,
    adapter: str | None = None,
    dtype: str | None = None,
) -> tuple[str, Report]:
    """Read a model in any format and write it in another; return the format written and the report of all tensors.

    `to_format` is "run" or a format that the family can write, by default its own. `average` is the number of newest
    checkpoints of a run directory to average. `verify` checks the hashes of the source first. `adapter` is a folder of
    peft, whose adapters are added to the weights. `dtype="int8"` writes the kernels of a transformer's layers in int8,
    as a run directory, which is smaller and computes in int8. The folder appears when it is complete, with the hashes
    of its files in `SHA256SUMS`; the report has the digest of the tensors.
    """
    target = Path(target).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is not empty; give another --to")
    if adapter is not None and average != 1:
        raise ValueError(f"--adapter={adapter} with --average={average}: give one of both")
    options: dict[str, Any] = {"format": format, "classifier": classifier, "lowercase": lowercase, "verify": verify}
    options["untrusted"] = untrusted
    model = read_model(source, adapter=adapter, **options)
    if average != 1:
        steps, params = average_checkpoints(source, average)
        report = dataclasses.replace(model.report, source=f"{source}, mean of steps {', '.join(map(str, steps))}")
        model = dataclasses.replace(model, params=params, report=report)
    called = find_kind(model.config).called
    if model.pooling_unread:  # the converted model would pool by the mean
        raise ValueError(
            f"{model.pooling_unread}, so the pooling of its vectors would be lost: copy modules.json and the folders "
            "that it names, or remove these files to convert the encoder alone"
        )
    if model.average_with:
        parts = " and ".join(f"{source}/{name}" for name in model.average_with)
        raise ValueError(
            f"{source} averages {called} with {parts}, and no format holds several models: copy the folder, or convert "
            f"{parts} alone"
        )
    if model.network:
        raise ValueError(f"{source} holds {called}, which has no format other than its own: copy the folder")
    if dtype is not None:
        if dtype != "int8":
            raise ValueError(f"--dtype={dtype} is not known; leave it out for float32, or use int8")
        if to_format not in (None, "run"):
            raise ValueError(f"--dtype=int8 with --to_format={to_format}: only run directories hold int8 models")
        to_format = "run"
        if not is_int8(model.params):
            attends = hasattr(model.config, "attention")
            model = dataclasses.replace(model, params=quantise_model(model.params, attends, source))
    elif is_int8(model.params) and to_format != "run":
        raise ValueError(
            f"{source} is an int8 model, which only run directories hold: copy the folder, or convert the model that "
            "it was made from"
        )
    writers = {name: form.write for name, form in get_family(model.kind).formats.items() if form.write} | {"run": None}
    to_format = to_format or next(iter(writers))
    if to_format not in writers:
        raise ValueError(
            f"{source} holds {called}, which cannot be written as --to_format={to_format}; use {' or '.join(writers)}"
        )
    lost = "config.features" if model.features is not None else ""
    if model.task is not None and model.task.both_orders:
        lost = "config.both_orders"
    if lost and to_format != "run":
        raise ValueError(
            f"{source} was trained with {lost}, which the files of --to_format={to_format} do not hold, so they would "
            "predict something else: use --to_format=run"
        )
    if model.sentences is not None and to_format != "run":
        refuse_decoder_states(get_family(model.kind), source, "use --to_format=run")
    labelled = "classify" in model.params or "tag" in model.params  # transformers names the labels of other models, too
    fields: dict[str, Any] = {"labels": model.labels if labelled else None, "problem_type": model.problem_type}
    task = model.task
    if task is None and get_family(model.kind).inputs.takes_heads:
        task = find_task(model.params, source, positions=model.config.max_positions, extras=model.task_fields)
    head, params = model.sentences, dict(model.params)
    write = writers[to_format]
    target = target.resolve()
    with stage_folder(target) as stage:
        if write is None:
            run = {"program": "convert", "from": source, "average": average}
            fields |= {"sentences": head, "task": task, "features": model.features}
            write_run_directory(stage, model.config, params, model.tokenizer, run=run, **fields)
        else:
            if task is not None and task.activation:
                fields["activation"] = task.activation
            stored = {name: tree for name, tree in params.items() if name != NAME}
            if head is not None and list(stored) == ["encoder"]:
                form = get_family(model.kind).formats[to_format]
                stored = {"encoder": without_pooler(stored["encoder"], form, model.config)}
            write(stage, stored, model.config, **fields)
            write_reading_files(stage, model.tokenizer, model.config, params, task=task, head=head)
            write_sums(stage)
        publish_folder(stage, target)
    return to_format, dataclasses.replace(model.report, digest=digest(params))


def publish_folder(stage: Path, target: Path) -> None:
    """Move a complete folder to its place, where there is none or an empty one."""
    if target.is_dir() and (target.samefile(Path.cwd()) or os.path.ismount(target)):  # which cannot be replaced
        for file in stage.iterdir():
            file.replace(target / file.name)
        return
    if target.is_dir():
        target.rmdir()
    stage.replace(target)


def write_reading_files(
    folder: Path,
    tokenizer: Any,
    config: Any,
    params: Mapping[str, Any],
    *,
    task: Task | None,
    head: SentenceHead | None,
) -> None:
    """Write what others read texts with, next to a configuration: the tokenizer, its limit, prompts, and modules."""
    keeps = task is not None and (task.activation or (task.pipeline and task.kind != "questions"))
    length = task.max_length if task is not None and keeps else None
    for inside in (folder, *(file.parent for file in folder.glob("*/config.json"))):
        write_tokenizer(tokenizer, config, inside, length)
    if head is not None:  # for sentence-transformers
        write_sentence_files(folder, head, params, config)
    elif task is not None and task.prompt:
        write_reranker_files(folder, task.prompt, task.activation)


def write_tokenizer(tokenizer: Any, config: Any, folder: Path, length: int | None = None) -> None:
    """Write the tokenizer next to weights in a foreign format; for pieces, with the limits that transformers asks.

    `length` is the largest number of pieces of a text or pair, by default the positions of the model.
    """
    if isinstance(tokenizer, Tokenizer):
        types = getattr(config, "type_vocab_size", 1) > 1  # other models have no place for token_type_ids
        files = tokenizer.files_for_transformers(max_positions=length or config.max_positions, types=types)
        for name, content in files.items():
            write_bytes(folder / name, content)
    elif tokenizer is not None:
        tokenizer.save(folder)


def average_checkpoints(run: str | Path, count: int) -> tuple[list[int], dict[str, Any]]:
    """Return the steps of the newest `count` checkpoints of a run directory, and the mean of their parameters."""
    if count < 1:
        raise ValueError(f"an average of {count} checkpoints was requested; use 1 or more")
    run = check_path(run)
    if not is_run_directory(run):
        raise ValueError(f"{run} is not a run directory: only a run has several checkpoints to average")
    steps = saved_steps(run)
    if len(steps) < count:
        raise ValueError(
            f"{run} holds {len(steps)} checkpoints, of steps {', '.join(map(str, steps))}; an average of {count} was "
            "requested: use fewer, or train with a larger --config.keep"
        )
    lora, trained = read_json(run / "model.json").get("lora"), (load_params(run, step)[1] for step in steps[-count:])
    # The mean of adapters is not the adapter of the mean, so they are merged first.
    params = optim.average((read_adapted(run, lora, params) for params in trained) if lora else trained)
    check_finite(params, f"the average of {run}")
    return steps[-count:], params
