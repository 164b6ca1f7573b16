"""The means of a loss over given batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.train import make_evaluate
from bert_elmo_jax.train.step import State

Batch = Mapping[str, np.ndarray]


def build_means(loss: Any, params: Any, carry: Any = None) -> Callable[[Sequence[Batch]], dict[str, float]]:
    """Return a function from batches to the means of a loss, as a run's own evaluation has them; compiled once."""
    now: list[Sequence[Batch]] = []
    evaluate = make_evaluate(loss, lambda: now[-1], carry=carry)
    state: Any = State(None, None, jax.tree.map(jax.numpy.asarray, dict(params)), None, None, None)  # type: ignore[arg-type]

    def means(batches: Sequence[Batch]) -> dict[str, float]:
        now.append(batches)
        return evaluate(state)

    return means
