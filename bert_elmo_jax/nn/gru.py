"""A GRU as in torch, whose input products are one matrix product outside the loop; a BiGRU.

Cho et al. 2014, https://arxiv.org/abs/1406.1078, with the reset gate after the product, as torch and cuDNN have it.
"""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.lstm import both_directions, product
from bert_elmo_jax.nn.step_products import step_product, step_product_transposed, sum_products


def gru(
    x: Float[Array, "B T I"],
    input_kernel: Float[AnyArray, "I G"],
    state_kernel: Float[AnyArray, "C G"],
    bias: Float[AnyArray, " G"],
    state_bias: Float[AnyArray, " C"],
    hidden: Float32[AnyArray, "B C"],
    lengths: Int[AnyArray, " B"],
) -> tuple[Float[Array, "B T C"], Float32[Array, "B C"]]:
    """Return the outputs and, for each row, the state after its last real step.

    The G = 3 · C gates are r, z, n, and a state h becomes (1 - z) · n + z · h. `state_bias` is added to the product of
    the state for n, before r scales it; torch's other two biases of the state belong to `bias`. Products are computed
    in the type of `x`, all else in float32. Outputs beyond a row's length are zeros.

    >>> weights, zeros = (jnp.ones((5, 9)), jnp.ones((3, 9)), jnp.zeros(9), jnp.zeros(3)), jnp.zeros((2, 3))
    >>> outputs, hidden = gru(jnp.ones((2, 4, 5)), *weights, zeros, lengths=jnp.array([4, 1]))
    >>> outputs.shape, bool((hidden[1] == outputs[1, 0]).all()), outputs[1, 1:].any().item()
    ((2, 4, 3), True, False)
    """
    gates = product(x.swapaxes(0, 1), input_kernel)
    kernel = jnp.asarray(state_kernel).astype(gates.dtype)
    bias, state_bias, hidden = (jnp.asarray(part, jnp.float32) for part in (bias, state_bias, hidden))
    outputs, hidden = _recurrence(gates, kernel, bias, state_bias, hidden, jnp.asarray(lengths))
    return outputs.swapaxes(0, 1), hidden


def bigru(x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]) -> Float[Array, "B T O"]:
    """Return the concatenated outputs of a forward and a backward GRU; zeros beyond a row's length.

    >>> params = init_bigru(jax.random.key(0), 5, 3)
    >>> bigru(jnp.ones((2, 4, 5)), params, jnp.array([4, 1])).shape
    (2, 4, 6)
    """
    return both_directions(gru_from_zeros, x, params, lengths)[0]


def gru_from_zeros(
    x: Float[Array, "B T I"], params: Mapping[str, Any], lengths: Int[AnyArray, " B"]
) -> tuple[Float[Array, "B T C"], Float32[Array, "B C"]]:
    """Return the outputs and the last state of one direction of `init_bigru`, read from a zero state.

    >>> gru_from_zeros(jnp.ones((2, 4, 5)), init_bigru(jax.random.key(0), 5, 3)["forward"], jnp.array([4, 1]))[1].shape
    (2, 3)
    """
    weights = params["input_kernel"], params["state_kernel"], params["bias"], params["state_bias"]
    return gru(x, *weights, jnp.zeros((len(x), len(params["state_bias"])), jnp.float32), lengths)


def init_bigru(key: PRNGKeyArray, inputs: int, size: int) -> dict[str, dict[str, Array]]:
    """Initialise the parameters: Glorot input kernels, orthogonal state kernels, and biases of 0.

    >>> init_bigru(jax.random.key(0), 5, 3)["backward"]["state_kernel"].shape
    (3, 9)
    """
    draw_input, draw_state = nn.initializers.glorot_uniform(), nn.initializers.orthogonal()
    fresh = {}
    for direction, sub in zip(("forward", "backward"), jax.random.split(key, 2)):
        keys = jax.random.split(sub, 2)
        fresh[direction] = {
            "input_kernel": draw_input(keys[0], (inputs, 3 * size), jnp.float32),
            "state_kernel": draw_state(keys[1], (size, 3 * size), jnp.float32),
            "bias": jnp.zeros(3 * size),
            "state_bias": jnp.zeros(size),
        }
    return fresh


def _step(
    kernel: Array, bias: Array, state_bias: Array, hidden: Float32[Array, "B C"], gates: Float[Array, "B G"]
) -> tuple[Float32[Array, "B C"], Float32[Array, "B K"]]:
    """Return the new state of all rows, and r, z, n and the state's part of n before r scales it."""
    size = hidden.shape[-1]
    given, held = gates.astype(jnp.float32) + bias[None, :], step_product(hidden, kernel)
    r, z = jnp.split(jax.nn.sigmoid(given[:, : 2 * size] + held[:, : 2 * size]), 2, axis=-1)
    held = held[:, 2 * size :] + state_bias[None, :]
    n = jnp.tanh(given[:, 2 * size :] + r * held)
    return (1 - z) * n + z * hidden, jnp.concatenate([r, z, n, held], axis=-1)


def _scan(keep: bool, *arrays: Any) -> tuple[Array, Any]:
    gates, kernel, bias, state_bias, hidden, lengths = arrays

    def step(hidden: Array, at: tuple[Array, Array]) -> tuple[Array, Any]:
        t, gates_t = at
        new, activated = _step(kernel, bias, state_bias, hidden, gates_t)
        live = (t < lengths)[:, None]
        output = jnp.where(live, new, 0.0).astype(gates.dtype)
        hidden = jnp.where(live, new, hidden)
        kept = (jnp.where(live, activated, 0.0).astype(gates.dtype), hidden) if keep else None
        return hidden, (output, kept)

    return lax.scan(step, hidden, (jnp.arange(len(gates), dtype=lengths.dtype), gates))


@jax.custom_vjp
def _recurrence(*arrays: Any) -> tuple[Array, Array]:
    """Run the loop, given the input's part of the gates [T, B, G].

    The custom gradient carries only the state through the loop, and computes each weight's gradient as one product.
    """
    hidden, (outputs, _) = _scan(False, *arrays)
    return outputs, hidden


def _forward(*arrays: Any) -> tuple[tuple[Array, Array], Any]:
    last, (outputs, kept) = _scan(True, *arrays)
    _, kernel, _, _, hidden, lengths = arrays
    return (outputs, last), (kernel, hidden, lengths, *kept)


def _backward(kept: Any, gradients: tuple[Array, Array]) -> tuple[Array | None, ...]:
    kernel, hidden, lengths, activated, hiddens = kept
    d_outputs, d_hidden = gradients
    before = jnp.concatenate([hidden[None], hiddens])[:-1]

    def step(d_hidden: Array, at: Any) -> tuple[Array, Array]:
        t, d_output, acts, h = at
        live = (t < lengths)[:, None]
        r, z, n, held = jnp.split(acts.astype(jnp.float32), 4, axis=-1)
        d_new = d_hidden + d_output.astype(jnp.float32)
        d_n = d_new * (1 - z) * (1 - n * n)
        d_r, d_z = d_n * held * r * (1 - r), d_new * (h - n) * z * (1 - z)
        d_state = jnp.where(live, jnp.concatenate([d_r, d_z, d_n * r], axis=-1), 0.0)
        d_before = d_new * z + step_product_transposed(d_state, kernel)
        d_gates = jnp.where(live, jnp.concatenate([d_r, d_z, d_n], axis=-1), 0.0)
        return jnp.where(live, d_before, d_hidden), d_gates.astype(acts.dtype)

    over = (jnp.arange(len(activated), dtype=lengths.dtype), d_outputs, activated, before)
    d_hidden, d_gates = lax.scan(step, d_hidden, over, reverse=True)
    size = hidden.shape[-1]
    through = d_gates[..., 2 * size :] * activated[..., :size]  # what reaches the state's part of n
    d_kernel = sum_products(before, jnp.concatenate([d_gates[..., : 2 * size], through], axis=-1), kernel)
    d_bias, d_state_bias = (part.astype(jnp.float32).sum((0, 1)) for part in (d_gates, through))
    return d_gates, d_kernel, d_bias, d_state_bias, d_hidden, None


_recurrence.defvjp(_forward, _backward)
