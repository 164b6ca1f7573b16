"""A model prepared for a task, with a head, a network or a classifier of documents; and its `Trainable`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import load, optim, train
from bert_elmo_jax.analysis.layer_weights import layer_shares
from bert_elmo_jax.data.tasks.batches import Collate, TaskBatches
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.files import read_json
from bert_elmo_jax.inference.run_directory import best_step
from bert_elmo_jax.inference.task_model import Predictor
from bert_elmo_jax.report.language import Translate, english
from bert_elmo_jax.runs.data_facts import describe_files
from bert_elmo_jax.runs.initial_state import remark_warmup
from bert_elmo_jax.runs.model_facts import describe_model
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, Length, parse_share
from bert_elmo_jax.runs.task_report import remark_one_answer, task_sections
from bert_elmo_jax.runs.task_result import (
    compare_with_baselines,
    draw_result,
    draw_task_data,
    list_lines,
    name_model,
    title_run,
    to_json,
)
from bert_elmo_jax.runs.task_scores import figures_of, score_name
from bert_elmo_jax.runs.trainable import Ending, Evaluate, Feed, Section, Trainable

Put = Callable[[Mapping[str, np.ndarray]], Any]
Predict = Callable[[Any, Put], list[Any]]  # (parameters, put) -> predictions of the dev data


class PreparedTask(NamedTuple):
    """A model for a task before its first step.

    `describe(workdir)` writes its description; then `open(workdir)` returns functions that make batches of rows and
    predict the dev data.
    """

    task: Task
    rows: Sequence[Any]
    length: Length
    params: dict[str, Any]
    loss: Any
    coefficients: dict[str, float]
    rate: optim.Schedule
    method: optax.GradientTransformation
    describe: Callable[[Path], None]
    open: Callable[[Path], tuple[Collate, Predict]]
    size: Callable[[Mapping[str, np.ndarray]], int]  # tokens in a batch
    sharding: Sequence[Any] = ()  # rules of the encoder's family
    carry: Any = None  # of the loss, before the first step
    change_step: Callable[[Any], Any] = lambda step: step
    whole_batch: bool = False  # the loss is given the whole batch, and splits it itself into config.accumulate parts
    constants: Mapping[str, Any] = {}  # entries of every batch that no step changes
    conclude: Callable[[Path], None] = lambda workdir: None  # after the last step, before the scores

    def begin(self, workdir: Path) -> tuple[Collate, Predict]:
        """Describe the model in a folder, and return the functions of `open`."""
        self.describe(workdir)
        return self.open(workdir)


def build_task(
    config: ConfigDict,
    data: Data,
    prepared: PreparedTask,
    placement: train.Placement,
    sections: Callable[[Path, Translate], Sequence[Section]],
) -> Trainable:
    """Return the training of a prepared model; `sections` are further ones of the report of a run directory."""
    task, rows = prepared.task, prepared.rows
    steps, _, eval_every, checkpoint_every = prepared.length
    if config.batch_size % (unit := placement.parts * config.accumulate):
        how = f"cannot be shared by {placement.parts} devices in {config.accumulate} parts: use a multiple of {unit}"
        raise ValueError(f"config.batch_size={config.batch_size} {how}")

    def open_feed(workdir: Path, parallel: train.Parallel) -> Feed:
        collate, predict = prepared.open(workdir)
        even = isinstance(collate, PackedBatches)
        batches = TaskBatches(rows, config.batch_size, config.seed, collate, even=even)

        def evaluate(state: train.State) -> dict[str, float]:
            figures = figures_of(task, data.dev, predict(state.params, parallel.put_held_out))
            return {f"dev/{name}": value for name, value in figures.items()}

        return Feed(batches, evaluate)

    def finish(workdir: Path, state: train.State, evaluate: Evaluate, translate: Translate) -> Ending:
        if jax.process_index() == 0:
            prepared.conclude(workdir)
        ending = score_best(workdir, config, data, steps, translate)
        return ending._replace(sections=[*ending.sections, *sections(workdir, translate)])

    count = f"{steps:,} steps of {config.batch_size:,} rows ({len(rows):,} are an epoch)"
    return Trainable(
        summary=f"{task.name}, {count}",
        params=prepared.params,
        seed=config.seed,
        loss=prepared.loss,
        coefficients=prepared.coefficients,
        optimizer=prepared.method,
        rate=prepared.rate,
        schedule=train.Schedule(steps, config.log_every, eval_every, checkpoint_every, config.stop_after_failures),
        score=f"dev/{score_name(task)}",
        size=prepared.size,
        describe=prepared.describe,
        open=open_feed,
        finish=finish,
        report_holds="the curves of this run, and its mistakes",
        step_options={
            "accumulate": 1 if prepared.whole_batch else config.accumulate,
            "shared": tuple(prepared.constants),
        },
        constants=prepared.constants,
        change_step=prepared.change_step,
        carry=prepared.carry,
        sharding=prepared.sharding,
        patience=config.patience,
        remarks=remark_warmup(config.optimizer, steps),
    )


def score_best(workdir: Path, config: ConfigDict, data: Data, steps: int, translate: Translate = english) -> Ending:
    """Score the model that is best on dev, in batches of the compiled size, together with simple baselines."""
    model = load(workdir)
    assert isinstance(model, Predictor)
    model.warns_of_texts = False  # the run has, of the same texts
    task, score, step = model.task, score_name(model.task), best_step(workdir)
    parts = {part: examples for part, examples in (("dev", data.dev), ("test", data.test)) if examples}
    predicted = {
        part: (examples, model.predict_examples(examples, batch_size=config.batch_size))
        for part, examples in parts.items()
    }
    compared = compare_with_baselines(task, data.train, predicted)
    files = describe_files({part: config[part] for part in ("train", "dev", "test")})
    share = (
        {}
        if parse_share(config.dev) is None
        else {"dev": {"file": translate("{share} of train, held out", share=config.dev)}}
    )
    remarks = remark_one_answer(task, *predicted["dev"])
    shares = {place: weights.tolist() for place, weights in layer_shares(model.params).items()}
    result = {
        "step": step, "score": score, **{part: scores.figures for part, scores in compared.items()},
        "comparison": to_json(compared), **({"layer_shares": shares} if shares else {}), "data": files,
    }  # fmt: skip
    for line in (*remarks, *list_lines(score, compared)):
        say(line)
    sections = [
        draw_result(score, compared, step, steps, translate),
        describe_model(name_model(model), model.params, read_json(workdir / "run.json", default={}), translate),
        draw_task_data({"train": data.train, **parts}, task, {**share, **files}, translate),
        *task_sections(model, *predicted["dev"], translate),
    ]
    return Ending(sections, remarks, result, title_run(task, model, config.train, translate))
