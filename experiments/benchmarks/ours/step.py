"""Our pretraining step: the recipe's objective, optimiser and step, as `experiments.pretrain` runs them."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax import train
from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_step
from bert_elmo_jax.runs.start_run import keep_freed_memory

from .._inputs import Batch, read_settings
from . import about


def make_step(config: Any, batch: Batch, stored: Any = None) -> tuple[Any, Any, Any]:
    """Return a function that takes one training step, the objective and the parameters of a recipe's config.

    The model has the weights `stored`, or new ones.
    """
    family = get_family(config.family)
    model = family.config(**config.model)
    objective = family.objective(config, model)
    params = objective.init(jax.random.key(0)) if stored is None else stored
    mesh = train.make_mesh(devices=jax.devices()[:1])
    _, method, step = build_step(config, objective)
    rows = len(batch.get("segments", batch.get("lengths", ())))
    state = train.new_state(jax.tree.map(jax.numpy.array, params), method, jax.random.key(0), objective.carry(rows))
    parallel = train.over_mesh(step, state, mesh, (*family.sharding, *train.RULES))
    state, placed = parallel.place(state), parallel.put(batch)

    def run(wait: bool = True) -> None:
        nonlocal state
        state, metrics = parallel.step(state, placed)
        if wait:
            jax.block_until_ready(metrics)  # one program computes state and metrics, so they are ready together

    return run, objective, params


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a training step on the folder's batch."""
    keep_freed_memory()  # as `pretrain` does
    settings = read_settings(folder)
    config, _ = read_config(settings["recipe"])
    with config.unlocked():
        config.model.update({**settings["sizes"], "dtype": precision})
        config.update(settings.get("fields", {}))
    with np.load(folder / "batch.npz") as stored:
        batch = dict(stored)
    run, objective, params = make_step(config, batch, read_model(folder).params)
    terms, _, _ = jax.jit(lambda params: objective.loss(params, batch, None, None))(params)
    check = [float(sum(total / weight for total, weight in terms.values()))]
    return {"step": run}, {**about(), "check": check}
