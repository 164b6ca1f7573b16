"""A bidirectional LSTM that respects each row's length."""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.lstm import lstm


def bilstm(x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T O"]:
    """Return the concatenated outputs of a forward and a backward LSTM; zeros beyond a row's length.

    >>> params = init_bilstm(jax.random.key(0), 5, 3)
    >>> bilstm(jnp.ones((2, 4, 5)), params, jnp.array([4, 1])).shape
    (2, 4, 6)
    """
    outputs = []
    for direction in ("forward", "backward"):
        p = params[direction]
        turned = x if direction == "forward" else turn(x, lengths)
        zero = jnp.zeros((len(x), p["state_kernel"].shape[0]), jnp.float32)
        y, _, _ = lstm(turned, p["input_kernel"], p["state_kernel"], p["bias"], None, zero, zero, lengths)
        outputs.append(y if direction == "forward" else turn(y, lengths))
    return jnp.concatenate(outputs, axis=-1)


def turn(x: Float[Array, "B T D"], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T D"]:
    """Reverse the real positions of each row and leave the padding in place."""
    place, lengths = jnp.arange(x.shape[1])[None, :], jnp.asarray(lengths)[:, None]
    source = jnp.where(place < lengths, lengths - 1 - place, place)
    return jnp.take_along_axis(x, source[..., None], axis=1)


def init_bilstm(key: PRNGKeyArray, inputs: int, size: int) -> dict[str, dict[str, Array]]:
    """Initialise the parameters: Glorot input kernels, orthogonal state kernels, and biases of 0.

    >>> init_bilstm(jax.random.key(0), 5, 3)["backward"]["state_kernel"].shape
    (3, 12)
    """
    draw_input, draw_state = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    fresh = {}
    for direction, sub in zip(("forward", "backward"), jax.random.split(key, 2)):
        keys = jax.random.split(sub, 2)
        fresh[direction] = {
            "input_kernel": draw_input(keys[0], (inputs, 4 * size), jnp.float32),
            "state_kernel": draw_state(keys[1], (size, 4 * size), jnp.float32),
            "bias": jnp.zeros(4 * size),
        }
    return fresh
