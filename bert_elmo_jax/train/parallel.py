"""Run a step on many devices: `jit` over a mesh, or `pmap`."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from bert_elmo_jax.train.sharding import RULES, Rules, place_batch, shardings
from bert_elmo_jax.train.state import State
from bert_elmo_jax.train.step import Step

DEVICES = "devices"  # pmap's axis


@dataclass(frozen=True)
class Parallel:
    """A compiled step with its input and output conversions.

    `place` puts a state onto the devices, `put` a batch. `step` donates the state it is given. `gather` returns the
    state in the layout of checkpoints and evaluations.
    """

    place: Callable[[State], State]
    put: Callable[[Mapping[str, np.ndarray]], Any]
    step: Step
    gather: Callable[[State], State]


def over_mesh(step: Step, state: State, mesh: Mesh, rules: Rules = RULES) -> Parallel:
    """Compile the step for a mesh; `state` may consist of shapes only."""
    placed = shardings(state, mesh, rules)
    run = jax.jit(step, donate_argnums=0, out_shardings=(placed, NamedSharding(mesh, P())))
    return Parallel(
        lambda state: jax.tree.map(_put, state, placed),
        lambda batch: place_batch(batch, mesh),
        run,
        lambda state: state,
    )


def _put(leaf: Any, sharding: NamedSharding) -> jax.Array:
    """Put a leaf of a state, which every process has in full, onto the devices of all processes."""
    if sharding.is_fully_addressable:
        # A copy, because the step donates its state and must not consume the caller's arrays.
        return jax.device_put(leaf, sharding, may_alias=False)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return leaf  # already placed by reading the checkpoint
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(jax.random.key_data(leaf), sharding))
    host = np.array(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def over_pmap(step: Step, carry_axis: int = 0) -> Parallel:
    """Run the step (made with `axis=DEVICES`) on this process's devices, each with all parameters."""
    count = jax.local_device_count()
    run = jax.pmap(step, axis_name=DEVICES, donate_argnums=0)

    def place(state: State) -> State:
        repeat = jax.tree.map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), dataclasses.replace(state, carry=None))
        carry = jax.tree.map(lambda a: jnp.stack(jnp.split(a, count, carry_axis)), state.carry)
        return dataclasses.replace(repeat, carry=carry)

    def gather(state: State) -> State:
        first = jax.tree.map(lambda a: a[0], dataclasses.replace(state, carry=None))
        carry = jax.tree.map(lambda a: jnp.concatenate(list(a), carry_axis), state.carry)
        return dataclasses.replace(first, carry=carry)

    def put(batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        wrong = [f"{name} has {len(values)}" for name, values in batch.items() if len(values) % count]
        if wrong:
            raise ValueError(f"a batch's {wrong[0]} rows, which {count} devices cannot share equally")
        return {name: values.reshape(count, -1, *values.shape[1:]) for name, values in batch.items()}

    def one(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
        state, metrics = run(state, batch)
        return state, {name: value[0] for name, value in metrics.items()}

    return Parallel(place, put, one, gather)
