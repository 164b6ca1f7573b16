"""One training step, as a pure function of the state and a batch.

A loss is `loss(params, batch, key, carry) -> (terms, metrics, carry)`: `terms` and `metrics` are {name: (total,
weight)}, and no weight depends on the parameters. The step first sums each weight over all parts and devices and then
follows the gradient of Σ coefficient · total / weight. So one device, many devices, accumulation and pmap compute the
same update.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from bert_elmo_jax.optim import as_rows, find_rows, put_rows, take_rows
from bert_elmo_jax.train.state import State

Sums = dict[str, tuple[Any, Any]]  # name -> (total, weight)
Batch = Mapping[str, Any]
Loss = Callable[..., tuple[Sums, Sums, Any]]
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

    >>> from bert_elmo_jax.train import new_state
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

    def sums(params: Any, whole: Batch, part: Any) -> tuple[Sums, Any]:
        rows, key, carry = part
        terms, metrics, carry = loss(params, {**rows, **whole}, key, carry)
        if set(terms) != set(coefficients):
            raise ValueError(
                f"the loss has the terms {sorted(terms)}, but the coefficients are for {sorted(coefficients)}"
            )
        as_float = partial(jnp.asarray, dtype=jnp.float32)
        named = {name: (as_float(total), as_float(weight)) for name, (total, weight) in (terms | metrics).items()}
        return named, carry

    def weigh(params: Any, whole: Batch, part: Any) -> dict[str, Array]:
        return {name: weight for name, (_, weight) in sums(params, whole, part)[0].items()}

    def objective(
        small: Any, used: Any, whole: Batch, part: Any, weights: dict[str, Array] | None
    ) -> tuple[Array, tuple[dict[str, Array], dict[str, Array], Any]]:
        named, carry = sums(as_rows(small, used), whole, part)
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
        whole = {name: values for name, values in batch.items() if name in shared}
        rows = {name: values for name, values in batch.items() if name not in shared}
        if draw is not None:
            whole |= draw(batch, draw_key)
        used = find_rows(state.params, everywhere(touched({**rows, **whole}))) if touched is not None else {}
        small = take_rows(state.params, used)
        if accumulate == 1:
            found, (means, weights, carry) = gradient(small, used, whole, (rows, key, state.carry), None)
        else:
            parts = (
                jax.tree.map(lambda values: _split(values, accumulate, 0), rows),
                jax.random.split(key, accumulate),
                jax.tree.map(lambda values: _split(values, accumulate, carry_axis), state.carry),
            )

            def add_weights(so_far: Any, part: Any) -> tuple[Any, None]:
                return jax.tree.map(jnp.add, so_far, weigh(as_rows(small, used), whole, part)), None

            def add_gradients(so_far: Any, part: Any) -> tuple[Any, Any]:
                found, (means, _, carry) = gradient(small, used, whole, part, weights)
                return jax.tree.map(jnp.add, so_far, (found, means)), carry

            # The compiler removes everything that the weights do not need, so this pass is cheap.
            names = jax.eval_shape(weigh, as_rows(small, used), whole, jax.tree.map(lambda values: values[0], parts))
            none = dict.fromkeys(names, jnp.zeros(()))
            weights = over_devices(jax.lax.scan(add_weights, none, parts)[0])
            zero = jax.tree.map(jnp.zeros_like, small)
            (found, means), carry = jax.lax.scan(add_gradients, (zero, none), parts)
            carry = jax.tree.map(lambda values: _join(values, carry_axis), carry)
        found, means = over_devices((found, means))
        loss = sum((coefficients[name] * means[name] for name in coefficients), start=jnp.zeros(()))
        norm = optax.tree.norm(found)
        fine = jnp.isfinite(loss) & jnp.isfinite(norm)
        # Selected on the small trees, so that a large table with few touched rows is never read in full.
        old = (small, take_rows(state.optimizer, used), state.carry)
        updates, optimized = optimizer.update(found, old[1], small)
        new = (optax.apply_updates(small, updates), optimized, carry)
        small, optimized, carry = jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, old)
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
