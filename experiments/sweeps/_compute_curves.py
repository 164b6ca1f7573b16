"""Budgets, tasks and runs of `compute_curves`, which pretrains the systems of `story` several times at each budget."""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add
from bert_elmo_jax.sweeps.points import Point

from ._story import BUDGETS, STEPS, SYSTEMS

NAMES = ("AWD-LSTM", "ELMo", "GPT", "BERT")
TUNED = ("GPT", "BERT")
SEEDS = (0, 1, 2)
OPERATIONS = {"toy": (1e11, 4e11), "laptop": (1e13, 1e14)}
COLUMNS = {"toy": ("senses, English", "inference, English"), "laptop": ("entities, English", "inference, English")}
SHARES = {"toy": (1.0,), "laptop": (0.01, 0.1, 1.0)}


def name_column(task: str, share: float, operations: float) -> str:
    """Return the name of a column.

    >>> name_column("senses, English", 0.1, 4e11)
    'senses, 10% of the labels, 4e+11'
    """
    return f"{task.partition(',')[0]}, {100 * share:g}% of the labels, {operations:.0e}"


def count_steps(scale: str, system: str, operations: float) -> int:
    """Return the steps of a system's pretraining with a number of operations."""
    return round(STEPS[scale, "en"][system] * operations / BUDGETS[scale])


def pretrain(add: Add, system: str, operations: float, seed: int) -> Point:
    """Add a pretraining, evaluated once, at its end."""
    config, settings = SYSTEMS[add.scale]["en"][system]
    steps = count_steps(add.scale, system, operations)
    once = {"steps": steps, "eval_every": steps, "checkpoint_every": steps}
    return add.pretrain(f"{system}, {operations:.0e}, {seed}", config, **{**settings, **once, "seed": seed})


def pair_runs(
    add: Add, row: str, column: str, config: str, settings: dict[str, Any], models: dict[int, dict[str, Point]]
) -> tuple[Point, ...]:
    """Add one run for each pretraining, with its seed; `models` has the field that names it, by seed."""
    name = f"{row}, {column}"
    return tuple(
        run for seed, model in models.items() for run in add.runs(name, config, seeds=(seed,), **{**settings, **model})
    )
