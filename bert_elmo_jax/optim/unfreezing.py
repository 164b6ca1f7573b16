"""Gradual unfreezing: Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, section 3.3."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int32

from bert_elmo_jax.optim.masks import nothing
from bert_elmo_jax.optim.paths import PyTree
from bert_elmo_jax.optim.schedules import Schedule


class Joined(NamedTuple):
    """The number of steps, and the state of each group's optimiser."""

    step: Int32[Array, ""]
    groups: dict[str, Any]


def join_later(
    starts: PyTree, rate: Schedule, optimizer: Callable[[Schedule], optax.GradientTransformation], clip: float
) -> optax.GradientTransformation:
    """Train each parameter from its step in `starts` (a tree of integers like the parameters).

    Before that, the parameter keeps every bit, and clipping by global norm excludes it. Parameters with the same start
    share an optimiser whose moments begin then, made by `optimizer` for the rest of the schedule.

    >>> import jax.numpy as jnp, optax
    >>> from bert_elmo_jax.optim import constant
    >>> params = {"encoder": jnp.ones(1), "head": jnp.ones(1)}
    >>> method = join_later({"encoder": 2, "head": 0}, constant(0.5), optax.sgd, clip=10.0)
    >>> state = method.init(params)
    >>> for _ in range(3):
    ...     updates, state = method.update({"encoder": jnp.ones(1), "head": jnp.ones(1)}, state, params)
    ...     params = optax.apply_updates(params, updates)
    >>> params["encoder"].item(), params["head"].item()
    (0.5, -0.5)
    """
    steps = sorted(set(jax.tree.leaves(starts)))
    if not steps or steps[0] < 0:
        raise ValueError(f"the steps from which parameters are trained are {steps[:5]}; expected 0 or more")

    def group(step: int) -> optax.GradientTransformation:
        members = jax.tree.map(lambda start: start == step, starts)
        return optax.masked(optimizer(lambda count: rate(count + step)), members)

    groups = {str(step): group(step) for step in steps}
    norm = optax.clip_by_global_norm(clip)

    def init(params: PyTree) -> Joined:
        return Joined(jnp.zeros((), jnp.int32), {name: group.init(params) for name, group in groups.items()})

    def update(updates: PyTree, state: Joined, params: PyTree = None) -> tuple[PyTree, Joined]:
        awake = jax.tree.map(lambda start: state.step >= start, starts)
        seen = jax.tree.map(lambda u, on: jnp.where(on, u, jnp.zeros_like(u)), updates, awake)
        seen, _ = norm.update(seen, norm.init(params))
        out, inner = seen, {}
        for step in steps:
            name = str(step)
            # Each group changes only its own leaves.
            out, after = groups[name].update(out, state.groups[name], params)
            on = state.step >= step
            inner[name] = jax.tree.map(lambda new, old, on=on: jnp.where(on, new, old), after, state.groups[name])
        out = jax.tree.map(lambda u, on: jnp.where(on, u, nothing(u)), out, awake)
        return out, Joined(state.step + 1, inner)

    return optax.GradientTransformation(init, update)
