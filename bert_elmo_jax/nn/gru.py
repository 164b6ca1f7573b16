"""A GRU as in torch, whose input products are one matrix product outside the loop; a BiGRU.

Cho et al. 2014, https://arxiv.org/abs/1406.1078, with the reset gate after the product, as torch and cuDNN have it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.lstm import before_each_step, init_directions, product
from bert_elmo_jax.nn.run_steps import Loop, run_steps
from bert_elmo_jax.nn.step_products import step_product, step_product_transposed, sum_products


def gru(
    x: Float[Array, "B T I"],
    input_kernel: Float[AnyArray, "I G"],
    state_kernel: Float[AnyArray, "C G"],
    bias: Float[AnyArray, " G"],
    state_bias: Float[AnyArray, " C"],
    hidden: Float32[AnyArray, "B C"],
    lengths: Int[AnyArray, " B"],
    reverse: bool = False,
) -> tuple[Float[Array, "B T C"], Float32[Array, "B C"]]:
    """Return the outputs and, for each row, the state after its last real step.

    The G = 3 · C gates are r, z, n, and a state h becomes (1 - z) · n + z · h. `state_bias` is added to the product of
    the state for n, before r scales it; torch's other two biases of the state belong to `bias`. Products are computed
    in the type of `x`, all else in float32. Outputs beyond a row's length are zeros. With `reverse`, each row is read
    from its last real step to its first.

    >>> weights, zeros = (jnp.ones((5, 9)), jnp.ones((3, 9)), jnp.zeros(9), jnp.zeros(3)), jnp.zeros((2, 3))
    >>> outputs, hidden = gru(jnp.ones((2, 4, 5)), *weights, zeros, lengths=jnp.array([4, 1]))
    >>> outputs.shape, bool((hidden[1] == outputs[1, 0]).all()), outputs[1, 1:].any().item()
    ((2, 4, 3), True, False)
    """
    direction = _direction(product(x.swapaxes(0, 1), input_kernel), state_kernel, bias, state_bias, hidden)
    ((outputs, hidden),) = _recurrence((reverse,), jnp.asarray(lengths), [direction])
    return outputs.swapaxes(0, 1), hidden


def bigru(x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T O"]:
    """Return the concatenated outputs of a forward and a backward GRU; zeros beyond a row's length.

    >>> params = init_bigru(jax.random.key(0), 5, 3)
    >>> bigru(jnp.ones((2, 4, 5)), params, jnp.array([4, 1])).shape
    (2, 4, 6)
    """
    return bigru_with_states(x, params, lengths)[0]


def bigru_with_states(
    x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T O"], Float32[Array, "B O"]]:
    """Return what `bigru` returns, and the last states of both directions.

    The backward GRU reads each row from its last real step, and ends at the first.
    """
    reads, directions = x.swapaxes(0, 1), []
    for name in ("forward", "backward"):
        p = params[name]
        zero = jnp.zeros((x.shape[0], len(p["state_bias"])), jnp.float32)
        gates = product(reads, p["input_kernel"])
        directions.append(_direction(gates, p["state_kernel"], p["bias"], p["state_bias"], zero))
    results = _recurrence((False, True), jnp.asarray(lengths), directions)
    outputs, last = (jnp.concatenate(parts, axis=-1) for parts in zip(*results))
    return outputs.swapaxes(0, 1), last


def init_bigru(key: PRNGKeyArray, inputs: int, size: int) -> dict[str, dict[str, Array]]:
    """Initialise the parameters: Glorot input kernels, orthogonal state kernels, and biases of 0.

    >>> init_bigru(jax.random.key(0), 5, 3)["backward"]["state_kernel"].shape
    (3, 9)
    """
    fresh = init_directions(key, inputs, size, 3 * size)
    return {direction: {**params, "state_bias": jnp.zeros(size)} for direction, params in fresh.items()}


def _step(
    kernel: Array, bias: Array, state_bias: Array, hidden: Float32[Array, "B C"], gates: Float[Array, "B G"]
) -> tuple[Float32[Array, "B C"], Float32[Array, "B K"]]:
    """Return the new state of all rows, and r, z, n and the state's part of n before r scales it."""
    size = hidden.shape[-1]
    from_input, from_state = gates.astype(jnp.float32) + bias[None, :], step_product(hidden, kernel)
    r, z = jnp.split(jax.nn.sigmoid(from_input[:, : 2 * size] + from_state[:, : 2 * size]), 2, axis=-1)
    from_state = from_state[:, 2 * size :] + state_bias[None, :]
    n = jnp.tanh(from_input[:, 2 * size :] + r * from_state)
    return (1 - z) * n + z * hidden, jnp.concatenate([r, z, n, from_state], axis=-1)


class Direction(NamedTuple):
    """The arrays of one GRU; all have the same rows and steps."""

    gates: Array  # the input's part [T, B, G]
    kernel: Array
    bias: Array
    state_bias: Array
    hidden: Array


def _direction(gates: Array, kernel: Any, bias: Any, state_bias: Any, hidden: Any) -> Direction:
    """Return the arrays with the kernel in the type of `gates`, and all else in float32."""
    bias, state_bias, hidden = (jnp.asarray(part, jnp.float32) for part in (bias, state_bias, hidden))
    return Direction(gates, jnp.asarray(kernel).astype(gates.dtype), bias, state_bias, hidden)


def _loop(reverse: bool, keep: bool, lengths: Array, d: Direction) -> Loop:
    def step(t: Array, hidden: Array) -> tuple[Array, Any]:
        gates = lax.dynamic_index_in_dim(d.gates, t, keepdims=False)
        new, activated = _step(d.kernel, d.bias, d.state_bias, hidden, gates)
        live = (t < lengths)[:, None]
        output = jnp.where(live, new, 0.0).astype(gates.dtype)
        hidden = jnp.where(live, new, hidden)
        residuals = (jnp.where(live, activated, 0.0).astype(gates.dtype), hidden) if keep else None
        return hidden, (output, residuals)

    shape, residuals = (d.gates.shape[0], *d.hidden.shape), None
    if keep:
        # Where the loop skips steps, the state before the first is the given one.
        residuals = (jnp.zeros((*shape[:2], 4 * shape[2]), d.gates.dtype), jnp.broadcast_to(d.hidden, shape))
    return Loop(step, d.hidden, (jnp.zeros(shape, d.gates.dtype), residuals), reverse)


Results = list[tuple[Array, Array]]  # of each direction: the outputs and the last state


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _recurrence(reverses: tuple[bool, ...], lengths: Array, directions: list[Direction]) -> Results:
    """Run the loop of one or two directions.

    The custom gradient carries only the state through the loop, and computes each weight's gradient as one product.
    """
    loops = [_loop(reverse, False, lengths, d) for reverse, d in zip(reverses, directions, strict=True)]
    return [(outputs, last) for last, (outputs, _) in run_steps(loops, lengths)]


def _forward(reverses: tuple[bool, ...], lengths: Array, directions: list[Direction]) -> tuple[Results, Any]:
    loops = [_loop(reverse, True, lengths, d) for reverse, d in zip(reverses, directions, strict=True)]
    results = run_steps(loops, lengths, trained=True)
    weights = [(d.kernel, d.hidden) for d in directions]
    return [(outputs, last) for last, (outputs, _) in results], (
        lengths,
        weights,
        [residuals for _, (_, residuals) in results],
    )


def _loop_back(reverse: bool, lengths: Array, kernel: Array, residuals: Any, gradients: Any) -> Loop:
    (activated, before), (d_outputs, d_hidden) = residuals, gradients

    def step(t: Array, d_hidden: Array) -> tuple[Array, Array]:
        d_output, acts, h = (lax.dynamic_index_in_dim(x, t, keepdims=False) for x in (d_outputs, activated, before))
        live = (t < lengths)[:, None]
        r, z, n, from_state = jnp.split(acts.astype(jnp.float32), 4, axis=-1)
        d_new = d_hidden + d_output.astype(jnp.float32)
        d_n = d_new * (1 - z) * (1 - n * n)
        d_r, d_z = d_n * from_state * r * (1 - r), d_new * (h - n) * z * (1 - z)
        d_state = jnp.where(live, jnp.concatenate([d_r, d_z, d_n * r], axis=-1), 0.0)
        d_before = d_new * z + step_product_transposed(d_state, kernel)
        d_gates = jnp.where(live, jnp.concatenate([d_r, d_z, d_n], axis=-1), 0.0)
        return jnp.where(live, d_before, d_hidden), d_gates.astype(acts.dtype)

    size = before.shape[-1]
    return Loop(step, d_hidden, jnp.zeros_like(activated[..., : 3 * size]), not reverse)


def _backward(reverses: tuple[bool, ...], residuals: Any, gradients: Results) -> tuple[None, list[Direction]]:
    lengths, weights, arrays = residuals
    states = [
        (activated, before_each_step(hidden, hiddens, reverse))
        for reverse, (_, hidden), (activated, hiddens) in zip(reverses, weights, arrays, strict=True)
    ]
    loops = [
        _loop_back(reverse, lengths, kernel, state, gradient)
        for reverse, (kernel, _), state, gradient in zip(reverses, weights, states, gradients, strict=True)
    ]
    results = run_steps(loops, lengths, trained=True)
    return None, [_gradients(kernel, *state, *ends) for (kernel, _), state, ends in zip(weights, states, results)]


def _gradients(kernel: Array, activated: Array, before: Array, d_hidden: Array, d_gates: Array) -> Direction:
    """Return the gradients of a direction's arrays; `d_hidden` and `d_gates` come from the loop."""
    size = d_hidden.shape[-1]
    through = d_gates[..., 2 * size :] * activated[..., :size]  # what reaches the state's part of n
    d_kernel = sum_products(before, jnp.concatenate([d_gates[..., : 2 * size], through], axis=-1), kernel)
    d_bias, d_state_bias = (part.astype(jnp.float32).sum((0, 1)) for part in (d_gates, through))
    return Direction(d_gates, d_kernel, d_bias, d_state_bias, d_hidden)


_recurrence.defvjp(_forward, _backward)
