"""Held-out evaluation: sum a loss over all batches and divide once at the end."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.train.state import State
from bert_elmo_jax.train.step import Loss

Batch = Mapping[str, np.ndarray]


def make_evaluate(
    loss: Loss,
    batches: Callable[[], Iterable[Batch]],
    *,
    put: Callable[[Batch], Any] = dict,
    carry: Any = None,
) -> Callable[[State], dict[str, float]]:
    """Return a function that maps a state to the mean of every term and metric of a loss, without dropout.

    `batches()` returns the held-out batches from the beginning; `carry` is the carry of the first batch. Names with a
    total weight of zero are left out.

    >>> def loss(params, batch, key, carry):
    ...     return {"square": ((batch["x"] ** 2 * params["w"]).sum(), batch["x"].size)}, {}, carry
    >>> evaluate = make_evaluate(loss, lambda: [{"x": np.array([1.0])}, {"x": np.array([2.0, 3.0])}])
    >>> evaluate(State(None, None, {"w": np.float32(3)}, None, None, None))
    {'square': 14.0}
    """

    @jax.jit
    def sums(params: Any, batch: Any, carry: Any) -> tuple[Any, Any]:
        terms, metrics, carry = loss(params, batch, None, carry)
        return terms | metrics, carry

    def evaluate(state: State) -> dict[str, float]:
        totals: dict[str, np.ndarray] = {}
        pending: Any = None
        now = carry
        for batch in batches():
            found, now = sums(state.params, put(batch), now)
            # The previous result is read while this one is computed.
            if pending is not None:
                _add(totals, pending)
            pending = found
        if pending is None:
            raise ValueError("there is no held-out text to evaluate on: prepare the data with --heldout=0.01 or more")
        _add(totals, pending)
        return {name: float(total / weight) for name, (total, weight) in totals.items() if weight > 0}

    return evaluate


def _add(totals: dict[str, np.ndarray], found: Mapping[str, Any]) -> None:
    # In float64, because float32 is too coarse to sum the losses of a million tokens.
    for name, pair in jax.device_get(dict(found)).items():
        totals[name] = totals.get(name, np.zeros(2)) + np.array([float(value) for value in pair])
