"""The GRU against torch's formula in numpy, and its custom gradient against JAX's own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import bigru, gru, init_bigru
from bert_elmo_jax.nn.gru import bigru_with_states

from .test_lstm import find_loops

pytestmark = pytest.mark.usefixtures("strict_dtypes")
B, T, D, C = 4, 5, 3, 6
LENGTHS = np.array([5, 0, 3, 1], np.int32)
NAMES = ("input_kernel", "state_kernel", "bias", "state_bias")


def torch_weights(seed=0, scale=0.7):
    """Return the four arrays of one direction of torch.nn.GRU, in double precision."""
    draw = np.random.default_rng(seed)
    shapes = {"weight_ih": (3 * C, D), "weight_hh": (3 * C, C), "bias_ih": (3 * C,), "bias_hh": (3 * C,)}
    return {name: draw.normal(0, scale, shape) for name, shape in shapes.items()}


def ours(torch):
    bias = torch["bias_ih"] + np.concatenate([torch["bias_hh"][: 2 * C], np.zeros(C)])
    arrays = torch["weight_ih"].T, torch["weight_hh"].T, bias, torch["bias_hh"][2 * C :]
    return {name: jnp.asarray(array, jnp.float32) for name, array in zip(NAMES, arrays)}


def inputs(seed=1):
    draw = np.random.default_rng(seed)
    return tuple(jnp.asarray(draw.normal(0, 1, shape), jnp.float32) for shape in [(B, T, D), (B, C)])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_torch(row, hidden, torch):
    """Apply torch.nn.GRU's documented formula to one row; return all states."""
    states = []
    for x in row:
        i_r, i_z, i_n = np.split(torch["weight_ih"] @ x + torch["bias_ih"], 3)
        h_r, h_z, h_n = np.split(torch["weight_hh"] @ hidden + torch["bias_hh"], 3)
        r, z = sigmoid(i_r + h_r), sigmoid(i_z + h_z)
        n = np.tanh(i_n + r * h_n)
        hidden = (1 - z) * n + z * hidden
        states.append(hidden)
    return np.array(states).reshape(len(row), C)


def test_values_are_those_of_torch():
    torch, (x, hidden) = torch_weights(), inputs()
    outputs, last = compiled(x, **ours(torch), hidden=hidden, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS):
        states = by_torch(np.asarray(x[row, :length], np.float64), np.asarray(hidden[row], np.float64), torch)
        np.testing.assert_allclose(outputs[row, :length], states, atol=1e-6)
        assert not np.asarray(outputs[row, length:]).any()
        np.testing.assert_allclose(last[row], states[-1] if length else hidden[row], atol=1e-6)


def test_both_directions_are_those_of_torch():
    both, (x, _) = [torch_weights(seed) for seed in (3, 4)], inputs()
    outputs = jax.jit(bigru)(x, dict(zip(("forward", "backward"), map(ours, both))), LENGTHS)
    assert outputs.shape == (B, T, 2 * C)
    for row, length in enumerate(LENGTHS):
        real = np.asarray(x[row, :length], np.float64)
        ahead, back = (by_torch(part, np.zeros(C), torch) for part, torch in zip((real, real[::-1]), both))
        np.testing.assert_allclose(outputs[row, :length], np.concatenate([ahead, back[::-1]], axis=1), atol=1e-6)
        assert not np.asarray(outputs[row, length:]).any()


def naive(x, input_kernel, state_kernel, bias, state_bias, hidden, lengths, reverse=False):
    """Compute each row separately, step by step, with JAX's own gradient."""
    rows, lasts = [], []
    for row, length in enumerate(lengths):
        h, outputs = hidden[row], []
        for t in reversed(range(length)) if reverse else range(length):
            i_r, i_z, i_n = jnp.split(x[row, t] @ input_kernel + bias, 3)
            h_r, h_z, h_n = jnp.split(h @ state_kernel, 3)
            r, z = jax.nn.sigmoid(i_r + h_r), jax.nn.sigmoid(i_z + h_z)
            h = (1 - z) * jnp.tanh(i_n + r * (h_n + state_bias)) + z * h
            outputs.append(h)
        outputs = outputs[::-1] if reverse else outputs
        rows.append(jnp.stack(outputs + [jnp.zeros_like(h)] * (x.shape[1] - length)))
        lasts.append(h)
    return jnp.stack(rows), jnp.stack(lasts)


compiled = jax.jit(gru, static_argnames="reverse")


@functools.partial(jax.jit, static_argnums=(0, 5))
def scored(function, w, x, hidden, lengths=None, reverse=False):
    """Return a scalar of all outputs, so that every gradient is nonzero, the outputs, and the gradients."""
    lengths = LENGTHS if lengths is None else lengths

    def score(w, x, hidden):
        parts = function(x, *(w[name] for name in NAMES), hidden, lengths, reverse=reverse)
        mix = [np.random.default_rng(n).normal(size=part.shape).astype(np.float32) for n, part in enumerate(parts)]
        return sum((part.astype(jnp.float32) * m).sum() for part, m in zip(parts, mix, strict=True)), parts

    return jax.value_and_grad(score, argnums=(0, 1, 2), has_aux=True)(w, x, hidden)


@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_every_gradient(reverse):
    w, (x, hidden) = ours(torch_weights(scale=1.5)), inputs()
    actual, expected = (scored(function, w, x, hidden, None, reverse) for function in (gru, naive))
    assert all(np.asarray(part).any() for part in jax.tree.leaves(expected[1]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5, rtol=2e-5), actual, expected)


def test_padding_is_ignored_even_if_nan():
    w, (x, hidden) = ours(torch_weights()), inputs()
    beyond = np.arange(T)[None, :, None] >= LENGTHS[:, None, None]
    spoilt = jnp.where(beyond, jnp.nan, x)
    (value, parts), gradients = scored(gru, w, x, hidden)
    (same, spoilt_parts), spoilt_gradients = scored(gru, w, spoilt, hidden)
    assert value == same
    jax.tree.map(np.testing.assert_array_equal, parts, spoilt_parts)
    for name in NAMES[1:]:
        np.testing.assert_array_equal(gradients[0][name], spoilt_gradients[0][name])
    assert not np.asarray(gradients[1])[np.broadcast_to(beyond, x.shape)].any()


def test_rows_do_not_depend_on_their_company_or_width():
    w, (x, hidden) = ours(torch_weights()), inputs()
    outputs, last = compiled(x, **w, hidden=hidden, lengths=LENGTHS)
    wide = jnp.pad(x[2:3], [(0, 1), (0, 4), (0, 0)])
    alone_outputs, alone_last = compiled(wide, **w, hidden=jnp.stack([hidden[2], hidden[0]]), lengths=np.array([3, 0]))
    np.testing.assert_allclose(alone_outputs[0, :3], outputs[2, :3], atol=1e-6)
    np.testing.assert_allclose(alone_last[0], last[2], atol=1e-6)
    np.testing.assert_array_equal(alone_last[1], hidden[0])
    # The state continues between windows.
    first, middle = compiled(x[:, :2], **w, hidden=hidden, lengths=np.minimum(LENGTHS, 2))
    second, end = compiled(x[:, 2:], **w, hidden=middle, lengths=np.maximum(LENGTHS - 2, 0))
    np.testing.assert_allclose(jnp.concatenate([first, second], 1), outputs, atol=1e-6)
    np.testing.assert_allclose(end, last, atol=1e-6)
    outputs, last = compiled(x[:, :0], **w, hidden=hidden, lengths=np.zeros(B, np.int32))
    assert outputs.shape == (B, 0, C)
    np.testing.assert_array_equal(last, hidden)


def test_loops_carry_only_the_state():
    """Neither weights nor sums of their gradients pass from step to step."""
    w, (x, hidden) = ours(torch_weights()), inputs()
    run = functools.partial(gru, hidden=hidden, lengths=LENGTHS)
    loops = list(find_loops(jax.make_jaxpr(jax.grad(lambda w: run(x, **w)[0].sum()))(w).jaxpr))
    assert len(loops) == 2
    for loop in loops:
        states = {v.aval.shape for v in loop.outvars} - {(T, B, n * C) for n in (1, 3, 4)}
        assert states and states <= {(), (B, C)}


def test_bfloat16_products_with_float32_state():
    w, (x, hidden) = ours(torch_weights(scale=0.4)), inputs()
    exact, near = (scored(gru, w, x.astype(dtype), hidden) for dtype in ("float32", "bfloat16"))
    assert [part.dtype for part in near[0][1]] == [jnp.bfloat16, jnp.float32]
    for a, b in zip(exact[0][1], near[0][1], strict=True):
        np.testing.assert_allclose(a, b.astype(jnp.float32), atol=0.03)
    assert {g.dtype for g in jax.tree.leaves(near[1][0])} == {jnp.dtype("float32")}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=0.05, rtol=0.1), exact[1][0], near[1][0])


def test_fresh_parameters():
    params = jax.jit(init_bigru, static_argnums=(1, 2))(jax.random.key(0), D, C)
    assert not any(params[d][name].any() for d in params for name in ("bias", "state_bias"))
    kernel = params["forward"]["state_kernel"]
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(C), atol=1e-5)
    assert (params["forward"]["input_kernel"] != params["backward"]["input_kernel"]).any()
    outputs, last = jax.jit(bigru_with_states)(inputs()[0], params, LENGTHS)
    np.testing.assert_allclose(last[0], np.concatenate([outputs[0, -1, :C], outputs[0, 0, C:]]), atol=1e-6)
    assert not last[1].any()
