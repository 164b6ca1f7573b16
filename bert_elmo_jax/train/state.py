"""The training state: everything that a step changes and a checkpoint holds."""

from collections.abc import Mapping
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jaxtyping import Array, Int32, PRNGKeyArray


@no_type_check  # JAX also rebuilds it with leaves that are not arrays of these shapes
@struct.dataclass
class State:
    """The state of a run.

    `step` counts the batches, `failed` the latest ones in a row that were skipped because of numbers that are not
    finite. `carry` passes from batch to batch, such as the state of an LSTM, or is None.

    >>> import jax, optax
    >>> state = new_state({"w": jax.numpy.ones(2)}, optax.sgd(0.1), jax.random.key(0))
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
