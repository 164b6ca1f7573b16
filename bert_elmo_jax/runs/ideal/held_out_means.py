"""The means of a loss over given batches, as a run's own evaluation takes them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.train import make_evaluate
from bert_elmo_jax.train.state import State

Batch = Mapping[str, np.ndarray]


def means_of(loss: Any, params: Any, carry: Any = None) -> Callable[[Sequence[Batch]], dict[str, float]]:
    """The means of a loss over batches, as a run's own evaluation takes them; compiled once for all of them."""
    now: list[Sequence[Batch]] = []
    evaluate = make_evaluate(loss, lambda: now[-1], carry=carry)
    state: Any = State(None, None, jax.tree.map(jax.numpy.asarray, dict(params)), None, None, None)  # type: ignore[arg-type]

    def means(batches: Sequence[Batch]) -> dict[str, float]:
        now.append(batches)
        return evaluate(state)

    return means
