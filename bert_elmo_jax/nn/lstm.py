"""An LSTM with projection and clipping, whose input products are one matrix product outside the loop; a BiLSTM."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import look_up
from bert_elmo_jax.nn.run_steps import Loop, run_steps
from bert_elmo_jax.nn.step_products import step_product, step_product_transposed, sum_products

# Of the gates i, j, f, o: how tanh is scaled and shifted to become σ, and the forget bias.
PER_GATE = np.array([[0.5, 1.0, 0.5, 0.5], [0.5, 0.0, 0.5, 0.5], [0.0, 0.0, 1.0, 0.0]], np.float32)

Clips = tuple[float | None, float | None]
Steps = tuple[Float32[Array, "B C"], Float32[Array, "B P"]]


def lstm(
    x: Float[Array, "B T I"],
    input_kernel: Float[AnyArray, "I G"],
    state_kernel: Float[AnyArray, "P G"],
    bias: Float[AnyArray, " G"],
    projection: Float[AnyArray, "C P"] | None,
    cell: Float32[AnyArray, "B C"],
    hidden: Float32[AnyArray, "B P"],
    lengths: Int[AnyArray, " B"],
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    reverse: bool = False,
) -> tuple[Float[Array, "B T P"], Float32[Array, "B C"], Float32[Array, "B P"]]:
    """Return the outputs and, for each row, the cell and hidden state after its last real step.

    The G = 4 · C gates are i, j, f, o, with a forget bias of 1. Without `projection` the output is as wide as the cell.
    Outputs beyond a row's length are zeros. With `reverse`, each row is read from its last real step to its first.

    >>> weights, zeros = (jnp.ones((5, 12)), jnp.ones((3, 12)), jnp.zeros(12), None), jnp.zeros((2, 3))
    >>> outputs, _, hidden = lstm(jnp.ones((2, 4, 5)), *weights, zeros, zeros, lengths=jnp.array([4, 1]))
    >>> outputs.shape, bool((hidden[1] == outputs[1, 0]).all()), outputs[1, 1:].any().item()
    ((2, 4, 3), True, False)
    """
    gates = product(x.swapaxes(0, 1), input_kernel)
    outputs, cell, hidden = recurrence(
        gates, state_kernel, bias, projection, cell, hidden, lengths, cell_clip, proj_clip, reverse=reverse
    )
    return outputs.swapaxes(0, 1), cell, hidden


def bilstm(x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T O"]:
    """Return the concatenated outputs of a forward and a backward LSTM; zeros beyond a row's length.

    >>> params = init_bilstm(jax.random.key(0), 5, 3)
    >>> bilstm(jnp.ones((2, 4, 5)), params, jnp.array([4, 1])).shape
    (2, 4, 6)
    """
    return bilstm_with_states(x, params, lengths)[0]


def bilstm_with_states(
    x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T O"], Float32[Array, "B O"], Float32[Array, "B O"]]:
    """Return what `bilstm` returns, and the last cells and hidden states of both directions.

    The backward LSTM reads each row from its last real step, and ends at the first.
    """
    reads, directions = x.swapaxes(0, 1), []
    for name in ("forward", "backward"):
        p = params[name]
        zero = jnp.zeros((x.shape[0], p["state_kernel"].shape[0]), jnp.float32)
        gates = product(reads, p["input_kernel"])
        directions.append(_direction(gates, None, p["state_kernel"], p["bias"], None, zero, zero))
    results = _recurrence((None, None), (False, True), jnp.asarray(lengths), directions)
    outputs, cells, hiddens = (jnp.concatenate(parts, axis=-1) for parts in zip(*results))
    return outputs.swapaxes(0, 1), cells, hiddens


def init_bilstm(key: PRNGKeyArray, inputs: int, size: int) -> dict[str, dict[str, Array]]:
    """Initialise the parameters: Glorot input kernels, orthogonal state kernels, and biases of 0.

    >>> init_bilstm(jax.random.key(0), 5, 3)["backward"]["state_kernel"].shape
    (3, 12)
    """
    return init_directions(key, inputs, size, 4 * size)


def init_directions(key: PRNGKeyArray, inputs: int, size: int, gates: int) -> dict[str, dict[str, Array]]:
    """Initialise the parameters of both directions of a network of `size` cells, with `gates` numbers in all gates."""
    draw_input, draw_state = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    fresh = {}
    for direction, sub in zip(("forward", "backward"), jax.random.split(key, 2)):
        keys = jax.random.split(sub, 2)
        fresh[direction] = {
            "input_kernel": draw_input(keys[0], (inputs, gates), jnp.float32),
            "state_kernel": draw_state(keys[1], (size, gates), jnp.float32),
            "bias": jnp.zeros(gates),
        }
    return fresh


def product(x: Float[Array, "*N I"], kernel: Float[AnyArray, "I G"]) -> Float[Array, "*N G"]:
    """Return `x @ kernel` as one product of two matrices, in the type of `x`.

    >>> product(jnp.ones((2, 3, 4)), jnp.ones((4, 5))).shape
    (2, 3, 5)
    """
    y = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ jnp.asarray(kernel).astype(x.dtype)
    return y.reshape(*x.shape[:-1], kernel.shape[1])


def recurrence(
    gates: Float[Array, "_ _ G"],
    state_kernel: Float[AnyArray, "P G"],
    bias: Float[AnyArray, " G"],
    projection: Float[AnyArray, "C P"] | None,
    cell: Float32[AnyArray, "B C"],
    hidden: Float32[AnyArray, "B P"],
    lengths: Int[AnyArray, " B"],
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    words: Int[AnyArray, "T B"] | None = None,
    reverse: bool = False,
) -> tuple[Float[Array, "T B P"], Float32[Array, "B C"], Float32[Array, "B P"]]:
    """Run the loop of an LSTM, from the last step to the first with `reverse`, given the input's part of the gates.

    `gates` are [T, B, G]; or, with `words`, [N, U, G]: a table of distinct words for each of N parts of the batch,
    looked up in the loop (see `look_up`). Products are computed in the type of `gates`, all else in float32.

    A custom gradient carries only the state through the loop and computes each weight's gradient as one matrix product.

    >>> gates, zeros, lengths = jnp.ones((4, 2, 12)), jnp.zeros((2, 3)), jnp.array([4, 4])
    >>> recurrence(gates, jnp.ones((3, 12)), jnp.zeros(12), None, zeros, zeros, lengths)[0].shape
    (4, 2, 3)
    """
    clips = (cell_clip, None if projection is None else proj_clip)
    direction = _direction(gates, words, state_kernel, bias, projection, cell, hidden)
    return _recurrence(clips, (reverse,), jnp.asarray(lengths), [direction])[0]


def lstm_step(
    gates: Float[Array, "B G"],
    state_kernel: Float[AnyArray, "C G"],
    bias: Float[AnyArray, " G"],
    cell: Float32[Array, "B C"],
    hidden: Float32[Array, "B C"],
) -> tuple[Float32[Array, "B C"], Float32[Array, "B C"]]:
    """Return the cell and hidden state after one step, given the input's contribution to the gates; see `lstm`."""
    kernel, bias = jnp.asarray(state_kernel).astype(gates.dtype), jnp.asarray(bias, jnp.float32)
    state, _ = _step((None, None), kernel, bias, None, (cell, hidden), gates)
    return state


def _clip(x: Array, limit: float | None) -> Array:
    return x if limit is None else jnp.clip(x, -limit, limit)


def _inside(clipped: Array, gradient: Array, limit: float | None) -> Array:
    """Return the gradient before a clip: zero where the clip was active."""
    return gradient if limit is None else jnp.where(jnp.abs(clipped) < limit, gradient, 0.0)


def _step(
    clips: Clips, kernel: Array, bias: Array, projection: Array | None, state: Steps, gates: Array
) -> tuple[Steps, Array]:
    """Return the new state and the activated gates of all rows."""
    cell, hidden = state
    activated = _activate(gates.astype(jnp.float32) + step_product(hidden, kernel) + bias[None, :])
    i, j, f, o = jnp.split(activated, 4, axis=-1)
    cell = _clip(f * cell + i * j, clips[0])
    hidden = o * jnp.tanh(cell)
    if projection is not None:
        hidden = _clip(step_product(hidden, projection), clips[1])
    return (cell, hidden), activated


def _activate(gates: Float32[Array, "B G"]) -> Float32[Array, "B G"]:
    """Return σ(i), tanh(j), σ(f + 1) and σ(o).

    With σ(x) = (1 + tanh(x / 2)) / 2 this is one loop over the rows. As four functions, XLA would read each gate in a
    loop of its own on a CPU, with jumps: a tenth of the time of a BiLSTM.
    """
    scale, shift, forget = np.repeat(PER_GATE, gates.shape[-1] // 4, axis=1)[:, None, :]
    return jnp.tanh((gates + forget) * scale) * scale + shift


class Direction(NamedTuple):
    """The arrays of one LSTM; all have the same rows and steps."""

    gates: Array  # [T, B, G], or [N, U, G] with words
    words: Array | None  # [T, B]
    kernel: Array
    bias: Array
    projection: Array | None
    cell: Array
    hidden: Array


def _direction(gates: Array, words: Any, kernel: Any, bias: Any, projection: Any, cell: Any, hidden: Any) -> Direction:
    """Return the arrays with kernels in the type of `gates`, and all else in float32."""
    kernel, projection = (
        None if part is None else jnp.asarray(part).astype(gates.dtype) for part in (kernel, projection)
    )
    bias, cell, hidden = (jnp.asarray(part, jnp.float32) for part in (bias, cell, hidden))
    return Direction(gates, None if words is None else jnp.asarray(words), kernel, bias, projection, cell, hidden)


def _loop(clips: Clips, reverse: bool, keep: bool, lengths: Array, d: Direction) -> Loop:
    reads = d.gates if d.words is None else d.words

    def step(t: Array, state: Steps) -> tuple[Steps, Any]:
        read = lax.dynamic_index_in_dim(reads, t, keepdims=False)
        gates = read if d.words is None else look_up(d.gates, read[None, :])[0]
        new, activated = _step(clips, d.kernel, d.bias, d.projection, state, gates)
        live = (t < lengths)[:, None]
        output = jnp.where(live, new[1], 0.0).astype(gates.dtype)
        state = (jnp.where(live, new[0], state[0]), jnp.where(live, new[1], state[1]))
        return state, (output, (jnp.where(live, activated, 0.0).astype(gates.dtype), *state) if keep else None)

    def repeat(one: Any) -> Array:
        return jnp.broadcast_to(one, (reads.shape[0], *one.shape))

    state = d.cell, d.hidden
    # A reverse loop starts at the longest row's end, so the states beyond it are the first ones.
    activated = jnp.zeros((d.hidden.shape[0], d.gates.shape[-1]), d.gates.dtype)
    residuals = tuple(map(repeat, (activated, *state))) if keep else None
    return Loop(step, state, (repeat(jnp.zeros_like(d.hidden, d.gates.dtype)), residuals), reverse)


Results = list[tuple[Array, Array, Array]]  # of each direction: the outputs, the last cell and the last hidden state


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _recurrence(clips: Clips, reverses: tuple[bool, ...], lengths: Array, directions: list[Direction]) -> Results:
    loops = [_loop(clips, reverse, False, lengths, d) for reverse, d in zip(reverses, directions, strict=True)]
    return [(outputs, *state) for state, (outputs, _) in run_steps(loops, lengths)]


def _forward(
    clips: Clips, reverses: tuple[bool, ...], lengths: Array, directions: list[Direction]
) -> tuple[Results, Any]:
    loops = [_loop(clips, reverse, True, lengths, d) for reverse, d in zip(reverses, directions, strict=True)]
    results = run_steps(loops, lengths, trained=True)
    # The gradient needs no more of the gates than their shape.
    few = [d._replace(gates=jnp.zeros((0, *d.gates.shape), d.gates.dtype)) for d in directions]
    return [(outputs, *state) for state, (outputs, _) in results], (
        lengths,
        few,
        [residuals for _, (_, residuals) in results],
    )


def before_each_step(
    first: Float32[Array, "B S"], states: Float32[Array, "T B S"], reverse: bool
) -> Float32[Array, "T B S"]:
    """Return the state before each step, given the first state and the state after each step."""
    if reverse:
        return jnp.concatenate([states, first[None]])[1:]
    return jnp.concatenate([first[None], states])[:-1]


def _loop_back(clips: Clips, reverse: bool, lengths: Array, d: Direction, residuals: Any, gradients: Any) -> Loop:
    (activated, cells, hiddens), (d_outputs, d_cell, d_hidden) = residuals, gradients
    arrays = d_outputs, activated, before_each_step(d.cell, cells, reverse), cells, hiddens

    def step(t: Array, carried: Steps) -> tuple[Steps, Any]:
        d_cell, d_hidden = carried
        d_output, acts, before, after, output = (lax.dynamic_index_in_dim(x, t, keepdims=False) for x in arrays)
        live = (t < lengths)[:, None]
        i, j, f, o = jnp.split(acts.astype(jnp.float32), 4, axis=-1)
        squashed = jnp.tanh(after)
        d_projected = d_hidden + d_output.astype(jnp.float32)
        if d.projection is None:
            d_out = d_projected
        else:
            d_projected = _inside(output, d_projected, clips[1])
            d_out = step_product_transposed(d_projected, d.projection)
        d_new = _inside(after, d_cell + d_out * o * (1 - squashed * squashed), clips[0])
        d_gates = jnp.concatenate(
            [
                d_new * j * i * (1 - i),
                d_new * i * (1 - j * j),
                d_new * before * f * (1 - f),
                d_out * squashed * o * (1 - o),
            ],
            axis=-1,
        )
        d_gates = jnp.where(live, d_gates, 0.0).astype(acts.dtype)
        d_projected = jnp.where(live, d_projected, 0.0).astype(acts.dtype)
        d_cell = jnp.where(live, d_new * f, d_cell)
        d_hidden = jnp.where(live, step_product_transposed(d_gates, d.kernel), d_hidden)
        return (d_cell, d_hidden), (d_gates, None if d.projection is None else d_projected)

    to_projected = None if d.projection is None else jnp.zeros_like(d_outputs)
    return Loop(step, (d_cell, d_hidden), (jnp.zeros_like(activated), to_projected), not reverse)


def _backward(
    clips: Clips, reverses: tuple[bool, ...], residuals: Any, gradients: Results
) -> tuple[None, list[Direction]]:
    lengths, directions, arrays = residuals
    each = list(zip(reverses, directions, arrays, gradients, strict=True))
    loops = [_loop_back(clips, reverse, lengths, d, part, gradient) for reverse, d, part, gradient in each]
    results = run_steps(loops, lengths, trained=True)
    pairs = zip(each, results, strict=True)
    return None, [_gradients(reverse, d, part, *ends) for (reverse, d, part, _), ends in pairs]


def _gradients(reverse: bool, d: Direction, residuals: Any, ends: Steps, d_arrays: Any) -> Direction:
    """Return the gradients of a direction's arrays; `ends` and `d_arrays` come from the loop."""
    (activated, cells, hiddens), (d_gates, d_projected) = residuals, d_arrays
    d_kernel = sum_products(before_each_step(d.hidden, hiddens, reverse), d_gates, d.kernel)
    d_projection = None
    if d.projection is not None:
        outs = activated[..., -d.cell.shape[-1] :].astype(jnp.float32) * jnp.tanh(cells)
        d_projection = sum_products(outs, d_projected, d.projection)
    d_bias = d_gates.astype(jnp.float32).sum((0, 1))
    if d.words is not None:
        table = jax.ShapeDtypeStruct(d.gates.shape[1:], d_gates.dtype)
        (d_gates,) = jax.linear_transpose(partial(look_up, words=d.words), table)(d_gates)
    return Direction(d_gates, None, d_kernel, d_bias, d_projection, *ends)


_recurrence.defvjp(_forward, _backward)
