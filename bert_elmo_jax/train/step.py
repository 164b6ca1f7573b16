"""The training state, one step as a pure function of the state and a batch, and held-out evaluation.

A loss is `loss(params, batch, key, carry) -> (terms, metrics, carry)`: `terms` and `metrics` are {name: (total,
weight)}, and no weight depends on the parameters. The step first sums each weight over all parts and devices and then
follows the gradient of Σ coefficient · total / weight. So one device, many devices, accumulation and pmap compute the
same update for the same batch.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from jaxtyping import Array, Int32, PRNGKeyArray

from bert_elmo_jax.optim import as_rows, find_rows, put_rows, take_rows
from bert_elmo_jax.optim.global_norm import global_norm

Sums = dict[str, tuple[Any, Any]]  # name -> (total, weight)
Batch = Mapping[str, Any]
Loss = Callable[..., tuple[Sums, Sums, Any]]


@no_type_check  # JAX also rebuilds it with leaves that are not arrays of these shapes
@struct.dataclass
class State:
    """The state of a run.

    `step` counts the batches, `failed` the latest ones in a row that were skipped because of numbers that are not
    finite. `carry` passes from batch to batch, such as the state of an LSTM, or is None.

    >>> state = new_state({"w": jnp.ones(2)}, optax.sgd(0.1), jax.random.key(0))
    >>> int(state.step), state.carry
    (0, None)
    """

    step: Int32[Array, ""]
    failed: Int32[Array, ""]
    params: Mapping[str, Any]
    optimizer: Any
    carry: Any
    key: PRNGKeyArray


def new_state(
    params: Mapping[str, Any], optimizer: optax.GradientTransformation, key: PRNGKeyArray, carry: Any = None
) -> State:
    """Return the state before the first step."""
    zero = jnp.zeros((), jnp.int32)
    return State(zero, zero.copy(), params, optimizer.init(params), carry, key)


def to_arrays(state: State) -> dict[str, Any]:
    """Convert a state to a dictionary of plain arrays for a checkpoint, random keys to their data."""
    fields = {name: getattr(state, name) for name in State.__dataclass_fields__}
    return fields | {"key": jax.random.key_data(state.key)}


def from_arrays(arrays: Mapping[str, Any]) -> State:
    """Undo `to_arrays`."""
    return State(**{**arrays, "key": jax.random.wrap_key_data(arrays["key"])})


Step = Callable[[State, Batch], tuple[State, dict[str, Any]]]


def make_step(
    loss: Loss,
    optimizer: optax.GradientTransformation,
    coefficients: Mapping[str, float],
    *,
    accumulate: int = 1,
    carry_axis: int = 0,
    shared: tuple[str, ...] = (),
    draw: Callable[[Batch, PRNGKeyArray], Mapping[str, Any]] | None = None,
    touched: Callable[[Batch], Mapping[str, Array]] | None = None,
    axis: str | None = None,
) -> Step:
    """Return a function from (state, batch) to (state, metrics), for `jax.jit`, or for `jax.pmap` with the axis `axis`.

    `accumulate` splits the rows of a batch into parts that are processed one after the other; each part gets the batch
    entries named in `shared`. `carry_axis` is the axis of the rows in the carry. `draw(batch, key)` returns entries
    drawn once for all parts and devices, such as negatives. `touched(batch)` returns the few rows of large tables that
    a step uses; other rows are not read (see `optim.rows`). The metrics are the means of the loss's terms and metrics,
    `loss` and `gradient_norm`. If `loss` or `gradient_norm` is not finite, only the counters change.

    >>> def loss(params, batch, key, carry):
    ...     error = (batch["x"] @ params["w"] - batch["y"]) ** 2
    ...     return {"square": (error.sum(), error.size)}, {}, carry
    >>> optimizer = optax.sgd(0.1)
    >>> state = new_state({"w": jnp.zeros(2)}, optimizer, jax.random.key(0))
    >>> step = make_step(loss, optimizer, {"square": 1.0}, accumulate=2)
    >>> state, metrics = step(state, {"x": jnp.eye(2), "y": jnp.array([1.0, 3.0])})
    >>> float(metrics["loss"]), [round(w, 2) for w in state.params["w"].tolist()]
    (5.0, [0.1, 0.3])
    """

    def sums(params: Any, shared_batch: Batch, part: Any) -> tuple[Sums, Any]:
        rows, key, carry = part
        terms, metrics, carry = loss(params, {**rows, **shared_batch}, key, carry)
        if set(terms) != set(coefficients):
            raise ValueError(
                f"the loss has the terms {sorted(terms)}, but the coefficients are for {sorted(coefficients)}"
            )
        as_float = partial(jnp.asarray, dtype=jnp.float32)
        named = {name: (as_float(total), as_float(weight)) for name, (total, weight) in (terms | metrics).items()}
        return named, carry

    def weigh(params: Any, shared_batch: Batch, part: Any) -> dict[str, Array]:
        return {name: weight for name, (_, weight) in sums(params, shared_batch, part)[0].items()}

    def objective(
        small: Any, used: Any, shared_batch: Batch, part: Any, weights: dict[str, Array] | None
    ) -> tuple[Array, tuple[dict[str, Array], dict[str, Array], Any]]:
        named, carry = sums(as_rows(small, used), shared_batch, part)
        if weights is None:
            weights = over_devices({name: jax.lax.stop_gradient(weight) for name, (_, weight) in named.items()})
        means = {name: _mean(total, weights[name]) for name, (total, _) in named.items()}
        value = sum((coefficients[name] * means[name] for name in coefficients), start=jnp.zeros(()))
        return value, (means, weights, carry)

    def over_devices(tree: Any) -> Any:
        return tree if axis is None else jax.lax.psum(tree, axis)

    def everywhere(ids: Mapping[str, Array]) -> Mapping[str, Array]:
        if axis is None:
            return ids
        return {name: jax.lax.all_gather(values, axis).ravel() for name, values in ids.items()}

    gradient = jax.grad(objective, has_aux=True)

    def step(state: State, batch: Batch) -> tuple[State, dict[str, Any]]:
        key, draw_key = jax.random.split(jax.random.fold_in(state.key, state.step))
        if axis is not None:
            key = jax.random.fold_in(key, jax.lax.axis_index(axis))
        shared_batch = {name: values for name, values in batch.items() if name in shared}
        rows = {name: values for name, values in batch.items() if name not in shared}
        if draw is not None:
            shared_batch |= draw(batch, draw_key)
        used = find_rows(state.params, everywhere(touched({**rows, **shared_batch}))) if touched is not None else {}
        small = take_rows(state.params, used)
        if accumulate == 1:
            gradients, (means, weights, carry) = gradient(small, used, shared_batch, (rows, key, state.carry), None)
        else:
            parts = (
                jax.tree.map(lambda values: _split(values, accumulate, 0), rows),
                jax.random.split(key, accumulate),
                jax.tree.map(lambda values: _split(values, accumulate, carry_axis), state.carry),
            )

            def add_weights(so_far: Any, part: Any) -> tuple[Any, None]:
                return jax.tree.map(jnp.add, so_far, weigh(as_rows(small, used), shared_batch, part)), None

            def add_gradients(so_far: Any, part: Any) -> tuple[Any, Any]:
                gradients, (means, _, carry) = gradient(small, used, shared_batch, part, weights)
                return jax.tree.map(jnp.add, so_far, (gradients, means)), carry

            # The compiler removes everything that the weights do not need, so this pass is cheap.
            names = jax.eval_shape(
                weigh, as_rows(small, used), shared_batch, jax.tree.map(lambda values: values[0], parts)
            )
            none = dict.fromkeys(names, jnp.zeros(()))
            weights = over_devices(jax.lax.scan(add_weights, none, parts)[0])
            zero = jax.tree.map(jnp.zeros_like, small)
            (gradients, means), carry = jax.lax.scan(add_gradients, (zero, none), parts)
            carry = jax.tree.map(lambda values: _join(values, carry_axis), carry)
        gradients, means = over_devices((gradients, means))
        loss = sum((coefficients[name] * means[name] for name in coefficients), start=jnp.zeros(()))
        norm = global_norm(gradients)
        fine = jnp.isfinite(loss) & jnp.isfinite(norm)
        old = (small, take_rows(state.optimizer, used))

        def update(gradients: Any, old: Any) -> tuple[Any, Any]:
            updates, optimized = optimizer.update(gradients, old[1], old[0])
            return optax.apply_updates(old[0], updates), optimized

        # It chooses between the small trees, so a large table with few touched rows is not read.
        small, optimized = choose(fine, update, gradients, old)
        carry = jax.tree.map(lambda a, b: jnp.where(fine, a, b), carry, state.carry)
        failed = jnp.where(fine, 0, state.failed + 1)
        after = State(
            state.step + 1,
            failed,
            put_rows(state.params, small, used),
            put_rows(state.optimizer, optimized, used),
            carry,
            state.key,
        )
        return after, {"loss": loss, **means, "gradient_norm": norm, "failed": failed}

    return step


def choose(fine: Array, update: Callable[[Any, Any], Any], gradients: Any, old: Any) -> Any:
    """Return `update(found, old)` where `fine`, else `old`."""
    if jax.default_backend() == "gpu":  # where the choice becomes a part of the kernels that update
        return jax.tree.map(partial(jnp.where, fine), update(gradients, old), old)
    # XLA on a CPU would copy the moments, and compute them twice, to choose number by number.
    return jax.lax.cond(fine, update, lambda gradients, old: old, gradients, old)


def make_evaluate(
    loss: Loss, batches: Callable[[], Iterable[Batch]], *, put: Callable[[Batch], Any] = dict, carry: Any = None
) -> Callable[[State], dict[str, float]]:
    """Return a function that maps a state to the mean of every term and metric of a loss, without dropout.

    `batches()` returns the held-out batches from the beginning; `carry` is the carry of the first batch. Metrics with a
    total weight of zero are left out; raise ValueError for a term.

    >>> def loss(params, batch, key, carry):
    ...     return {"square": ((batch["x"] ** 2 * params["w"]).sum(), batch["x"].size)}, {}, carry
    >>> evaluate = make_evaluate(loss, lambda: [{"x": np.array([1.0])}, {"x": np.array([2.0, 3.0])}])
    >>> evaluate(State(None, None, {"w": np.float32(3)}, None, None, None))
    {'square': 14.0}
    """

    @jax.jit
    def sums(params: Any, batch: Any, carry: Any) -> tuple[Any, Any, Any]:
        return loss(params, batch, None, carry)

    def evaluate(state: State) -> dict[str, float]:
        totals: dict[str, np.ndarray] = {}
        pending: Any = None
        now, terms = carry, {}
        for batch in batches():
            terms, metrics, now = sums(state.params, put(batch), now)
            # The previous result is read while this one is computed.
            if pending is not None:
                _add(totals, pending)
            pending = terms | metrics
        if pending is None:
            raise ValueError("there is no held-out text to evaluate on: prepare the data with --heldout=0.01 or more")
        _add(totals, pending)
        if empty := [name for name in terms if not totals[name][1] > 0]:
            raise ValueError(f"the held-out text has nothing to compute {', '.join(empty)} on: hold more text out")
        return {name: float(total / weight) for name, (total, weight) in totals.items() if weight > 0}

    return evaluate


def _add(totals: dict[str, np.ndarray], batch_sums: Mapping[str, Any]) -> None:
    # In float64, because float32 is too coarse to sum the losses of a million tokens.
    for name, pair in jax.device_get(dict(batch_sums)).items():
        totals[name] = totals.get(name, np.zeros(2)) + np.array([float(value) for value in pair])


def _mean(total: Array, weight: Array) -> Array:
    """Divide, with 0 for a weight of 0, so that a batch without such a term has finite gradients."""
    return jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1), 0)


def _split(values: Any, parts: int, axis: int) -> Array:
    """Split rows into parts in a strided way, so that each device has rows of every part."""
    size = values.shape[axis]
    if size % parts:
        raise ValueError(f"a batch has {size} rows (on each device), which cannot be split into {parts} equal parts")
    shape = (*values.shape[:axis], size // parts, parts, *values.shape[axis + 1 :])
    return jnp.moveaxis(jnp.reshape(values, shape), axis + 1, 0)


def _join(values: Array, axis: int) -> Array:
    """Undo `_split`."""
    apart = jnp.moveaxis(values, 0, axis + 1)
    return apart.reshape(*apart.shape[:axis], -1, *apart.shape[axis + 2 :])
