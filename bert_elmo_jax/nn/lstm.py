"""An LSTM with projection and clipping, whose input products are one matrix product outside the loop; a BiLSTM."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import look_up
from bert_elmo_jax.nn.step_products import step_product, step_product_transposed, sum_products

Clips = tuple[float | None, float | None]
# Rows, the parameters of one direction and the lengths -> the outputs and the last state.
Run = Callable[[Array, Mapping[str, Any], Any], tuple[Array, Array]]
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
) -> tuple[Float[Array, "B T P"], Float32[Array, "B C"], Float32[Array, "B P"]]:
    """Return the outputs and, for each row, the cell and hidden state after its last real step.

    The G = 4 · C gates are i, j, f, o, with a forget bias of 1. Without `projection` the output is as wide as the cell.
    Outputs beyond a row's length are zeros.

    >>> weights, zeros = (jnp.ones((5, 12)), jnp.ones((3, 12)), jnp.zeros(12), None), jnp.zeros((2, 3))
    >>> outputs, _, hidden = lstm(jnp.ones((2, 4, 5)), *weights, zeros, zeros, lengths=jnp.array([4, 1]))
    >>> outputs.shape, bool((hidden[1] == outputs[1, 0]).all()), outputs[1, 1:].any().item()
    ((2, 4, 3), True, False)
    """
    gates = product(x.swapaxes(0, 1), input_kernel)
    outputs, cell, hidden = recurrence(
        gates, state_kernel, bias, projection, cell, hidden, lengths, cell_clip, proj_clip
    )
    return outputs.swapaxes(0, 1), cell, hidden


def bilstm(x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T O"]:
    """Return the concatenated outputs of a forward and a backward LSTM; zeros beyond a row's length.

    >>> params = init_bilstm(jax.random.key(0), 5, 3)
    >>> bilstm(jnp.ones((2, 4, 5)), params, jnp.array([4, 1])).shape
    (2, 4, 6)
    """
    return both_directions(lstm_from_zeros, x, params, lengths)[0]


def both_directions(
    run: Run, x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T O"], Float32[Array, "B O"]]:
    """Return the outputs of a forward and a backward network side by side, and the last states of both.

    `run` takes rows, the parameters of one direction and the lengths, and returns the outputs and the last state. The
    backward network reads each row from its last real step.

    >>> def add(x, params, lengths):
    ...     sums = jnp.cumsum(x, axis=1)
    ...     return sums, sums[:, -1]
    >>> x, params = jnp.array([[[1.0], [2.0]]]), {"forward": {}, "backward": {}}
    >>> outputs, last = both_directions(add, x, params, jnp.array([2]))
    >>> outputs.tolist(), last.tolist()
    ([[[1.0, 3.0], [3.0, 2.0]]], [[3.0, 3.0]])
    """
    ahead, ahead_last = run(x, params["forward"], lengths)
    back, back_last = run(turn(x, lengths), params["backward"], lengths)
    return jnp.concatenate([ahead, turn(back, lengths)], axis=-1), jnp.concatenate([ahead_last, back_last], axis=-1)


def lstm_from_zeros(
    x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T C"], Float32[Array, "B C"]]:
    """Return the outputs and the last hidden state of one direction of `init_bilstm`, read from a zero state.

    >>> params = init_bilstm(jax.random.key(0), 5, 3)["forward"]
    >>> lstm_from_zeros(jnp.ones((2, 4, 5)), params, jnp.array([4, 1]))[1].shape
    (2, 3)
    """
    zero = jnp.zeros((len(x), params["state_kernel"].shape[0]), jnp.float32)
    weights = params["input_kernel"], params["state_kernel"], params["bias"]
    outputs, _, hidden = lstm(x, *weights, None, zero, zero, lengths)
    return outputs, hidden


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
) -> tuple[Float[Array, "T B P"], Float32[Array, "B C"], Float32[Array, "B P"]]:
    """Run the loop of an LSTM, given the input's contribution to the gates.

    `gates` are [T, B, G]; or, with `words`, [N, U, G]: a table of distinct words for each of N parts of the batch,
    looked up in the loop (see `look_up`). Products are computed in the type of `gates`, all else in float32.

    A custom gradient carries only the state through the loop and computes each weight's gradient as one matrix product.

    >>> gates, zeros, lengths = jnp.ones((4, 2, 12)), jnp.zeros((2, 3)), jnp.array([4, 4])
    >>> recurrence(gates, jnp.ones((3, 12)), jnp.zeros(12), None, zeros, zeros, lengths)[0].shape
    (4, 2, 3)
    """
    state_kernel = jnp.asarray(state_kernel).astype(gates.dtype)
    projection = None if projection is None else jnp.asarray(projection).astype(gates.dtype)
    bias, cell, hidden = (jnp.asarray(part, jnp.float32) for part in (bias, cell, hidden))
    clips = (cell_clip, None if projection is None else proj_clip)
    words = None if words is None else jnp.asarray(words)
    return _recurrence(clips, gates, words, state_kernel, bias, projection, cell, hidden, jnp.asarray(lengths))


def lstm_step(
    gates: Float[Array, "B G"],
    state_kernel: Float[AnyArray, "C G"],
    bias: Float[AnyArray, " G"],
    cell: Float32[Array, "B C"],
    hidden: Float32[Array, "B C"],
) -> tuple[Float32[Array, "B C"], Float32[Array, "B C"]]:
    """Return the cell and hidden state after one step, given the input's contribution to the gates; see `lstm`.

    >>> cell, hidden = lstm_step(jnp.ones((2, 12)), jnp.ones((3, 12)), jnp.zeros(12), *[jnp.zeros((2, 3))] * 2)
    >>> hidden.shape
    (2, 3)
    """
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
    gates = gates.astype(jnp.float32) + step_product(hidden, kernel) + bias[None, :]
    i, j, f, o = jnp.split(gates, 4, axis=-1)
    i, j, f, o = jax.nn.sigmoid(i), jnp.tanh(j), jax.nn.sigmoid(f + 1), jax.nn.sigmoid(o)
    cell = _clip(f * cell + i * j, clips[0])
    hidden = o * jnp.tanh(cell)
    if projection is not None:
        hidden = _clip(step_product(hidden, projection), clips[1])
    return (cell, hidden), jnp.concatenate([i, j, f, o], axis=-1)


def _scan(clips: Clips, keep: bool, *arrays: Any) -> tuple[Steps, Any]:
    gates, words, kernel, bias, projection, cell, hidden, lengths = arrays

    def step(state: Steps, at: tuple[Array, Array]) -> tuple[Steps, Any]:
        t, read = at
        gates_t = read if words is None else look_up(gates, read[None, :])[0]
        new, activated = _step(clips, kernel, bias, projection, state, gates_t)
        live = (t < lengths)[:, None]
        output = jnp.where(live, new[1], 0.0).astype(gates.dtype)
        state = (jnp.where(live, new[0], state[0]), jnp.where(live, new[1], state[1]))
        if not keep:
            return state, (output, None)
        return state, (output, (jnp.where(live, activated, 0.0).astype(gates.dtype), *state))

    reads = gates if words is None else words
    return lax.scan(step, (cell, hidden), (jnp.arange(len(reads), dtype=lengths.dtype), reads))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _recurrence(clips: Clips, *arrays: Any) -> tuple[Array, Array, Array]:
    state, (outputs, _) = _scan(clips, False, *arrays)
    return outputs, *state


def _forward(clips: Clips, *arrays: Any) -> tuple[tuple[Array, Array, Array], Any]:
    state, (outputs, kept) = _scan(clips, True, *arrays)
    gates, words, kernel, _, projection, cell, hidden, lengths = arrays
    table = None if words is None else (words, gates.shape)
    return (outputs, *state), (table, kernel, projection, cell, hidden, lengths, *kept)


def _backward(clips: Clips, kept: Any, gradients: tuple[Array, Array, Array]) -> tuple[Array | None, ...]:
    table, kernel, projection, cell, hidden, lengths, activated, cells, hiddens = kept
    d_outputs, d_cell, d_hidden = gradients
    cells_before = jnp.concatenate([cell[None], cells])[:-1]

    def step(carried: Steps, at: Any) -> tuple[Steps, Any]:
        d_cell, d_hidden = carried
        t, d_output, acts, before, after, output = at
        live = (t < lengths)[:, None]
        i, j, f, o = jnp.split(acts.astype(jnp.float32), 4, axis=-1)
        squashed = jnp.tanh(after)
        d_projected = d_hidden + d_output.astype(jnp.float32)
        if projection is None:
            d_out = d_projected
        else:
            d_projected = _inside(output, d_projected, clips[1])
            d_out = step_product_transposed(d_projected, projection)
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
        d_hidden = jnp.where(live, step_product_transposed(d_gates, kernel), d_hidden)
        return (d_cell, d_hidden), (d_gates, d_projected)

    steps = jnp.arange(len(activated), dtype=lengths.dtype)
    over = (steps, d_outputs, activated, cells_before, cells, hiddens)
    (d_cell, d_hidden), (d_gates, d_projected) = lax.scan(step, (d_cell, d_hidden), over, reverse=True)

    hiddens_before = jnp.concatenate([hidden[None], hiddens])[:-1]
    d_kernel = sum_products(hiddens_before, d_gates, kernel)
    d_projection = None
    if projection is not None:
        outs = activated[..., -cell.shape[-1] :].astype(jnp.float32) * jnp.tanh(cells)
        d_projection = sum_products(outs, d_projected, projection)
    d_bias = d_gates.astype(jnp.float32).sum((0, 1))
    if table is not None:
        words, shape = table
        (d_gates,) = jax.linear_transpose(
            lambda gates: look_up(gates, words), jax.ShapeDtypeStruct(shape, d_gates.dtype)
        )(d_gates)
    return d_gates, None, d_kernel, d_bias, d_projection, d_cell, d_hidden, None


_recurrence.defvjp(_forward, _backward)
