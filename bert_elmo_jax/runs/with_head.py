"""A BERT with a task's head, made ready for fine-tuning: rows, parameters, loss, and what is written before."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim
from bert_elmo_jax.data.tasks.batches import Collate, collate
from bert_elmo_jax.data.tasks.rows import check_length, make_rows
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.heads.task_head import coefficients, task_loss, task_outputs
from bert_elmo_jax.inference.predictions import predictions_of
from bert_elmo_jax.inference.run_directory import describe_run
from bert_elmo_jax.inference.task_forward import collate_inputs, scores_of
from bert_elmo_jax.inference.task_model import head_of
from bert_elmo_jax.runs.task_data import Data, class_weights, fitted
from bert_elmo_jax.runs.transfer import Start, features_of, method_of, params_of

Put = Callable[[Mapping[str, np.ndarray]], Any]


class Prepared(NamedTuple):
    """A model for a task before its first step, whatever it is made of.

    `method` makes the learning rate and the optimiser for so many steps, and steps an epoch. `begin` writes into the
    run directory what the run is of, and gives what makes batches of training rows, and the function that predicts the
    dev data from parameters (with a function that places a batch on the devices).
    """

    task: Task
    rows: Sequence[Any]
    params: dict[str, Any]
    loss: Any
    coefficients: dict[str, float]
    method: Callable[[int, int], tuple[optim.Schedule, optax.GradientTransformation]]
    begin: Callable[[Path], tuple[Collate, Callable[[Any, Put], list[Any]]]]
    size: Callable[[Mapping[str, np.ndarray]], int]
    sharding: Sequence[Any] = ()  # rules of the encoder's family


def prepare_head(config: ConfigDict, data: Data, start: Start, begins: bool = True) -> Prepared:
    """A BERT, whole or as features, with the head of the task; what is new in it is said where the run begins."""
    model, tokenizer = start.model, start.tokenizer
    task, features = (
        fitted(data.task, config, model.max_positions),
        features_of(config, start.family, model.num_layers, data.task.kind),
    )
    check_length(task, model.max_positions)
    head = head_of(task, features, model)
    module = start.family.build(model, pooler=head.pooled)
    params, new_pooler = params_of(start, task, head, config.seed, begins)
    rows, dev_rows = (make_rows(task, examples, tokenizer) for examples in (data.train, data.dev))
    shape: Any = {"limit": task.max_length, "pad_id": model.pad_id}
    frozen = config.transfer == "frozen"
    loss = task_loss(module, head, class_weights(config.class_weights, task, data.train), frozen)

    def begin(workdir: Path) -> tuple[Collate, Callable[[Any, Put], list[Any]]]:
        describe_run(workdir, model, params, tokenizer, task=task, features=features)
        outputs = jax.jit(functools.partial(task_outputs, module, head))
        inputs = functools.partial(collate_inputs, **shape)

        def predict(params: Any, put: Put) -> list[Any]:
            found = scores_of(lambda batch: outputs(params, put(batch)), dev_rows, config.batch_size, inputs)
            return predictions_of(task, data.dev, dev_rows, found)

        return functools.partial(collate, **shape), predict

    return Prepared(
        task, rows, params, loss, coefficients(task.kind),
        lambda steps, epoch: method_of(config, start.family, params, steps, epoch, new_pooler), begin,
        lambda batch: int((batch["segments"] > 0).sum()), start.family.sharding,
    )  # fmt: skip
