"""The size of a pretraining, counted from its config: parameters, positions read, and operations."""

from typing import NamedTuple

import jax
from ml_collections import ConfigDict

from bert_elmo_jax.optim import count_params
from bert_elmo_jax.runs.pretraining import build_objective


class Budget(NamedTuple):
    """Parameters of the encoder and of all that is trained, positions of all rows (both of a pair), operations."""

    parameters: int
    all_parameters: int
    positions: int
    operations: float


def count_budget(config: ConfigDict, vocab_size: int | None = None) -> Budget:
    """Return the budget of a config; its data give the vocabulary by default.

    Operations are the objective's own count, forward and back. Left out are lookups, convolutions over characters,
    DeBERTa's products with relative positions, and a teacher.

    >>> from bert_elmo_jax.runs.config_files import read_config
    >>> budget = count_budget(read_config("bert:toy")[0], 2_000)
    >>> (budget.parameters, budget.positions, f"{budget.operations:.3g}")
    (685952, 18432000, '5.54e+13')
    """
    _, objective = build_objective(config, vocab_size)
    params = jax.eval_shape(objective.init, jax.random.key(0))
    lengths = [(phase.examples.length, phase.steps * phase.rows * phase.tokens) for phase in objective.phases]
    operations = sum(objective.work(params, length) * positions for length, positions in lengths)
    positions = sum(positions for _, positions in lengths)
    return Budget(count_params(params["encoder"]), count_params(params), positions, operations)
