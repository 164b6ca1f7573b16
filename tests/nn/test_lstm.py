"""Tests of the LSTM and its custom gradient against a step-by-step implementation with JAX's gradient."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax.sharding import NamedSharding, PartitionSpec

from bert_elmo_jax.families import get_family
from bert_elmo_jax.nn import look_up, lstm, product, recurrence
from bert_elmo_jax.nn.lstm import lstm_step
from bert_elmo_jax.train import make_mesh

pytestmark = pytest.mark.usefixtures("strict_dtypes")
B, T, D, C, P = 4, 5, 3, 7, 4
LENGTHS = np.array([5, 0, 3, 1], np.int32)


def weights(projection=True, scale=1.5, seed=0):
    random = np.random.default_rng(seed)
    p = P if projection else C
    shapes = {"input_kernel": (D, 4 * C), "state_kernel": (p, 4 * C), "bias": (4 * C,), "projection": (C, p)}
    drawn = {name: jnp.asarray(random.normal(0, scale, shape), jnp.float32) for name, shape in shapes.items()}
    return drawn if projection else {name: drawn[name] for name in list(shapes)[:3]} | {"projection": None}


def inputs(projection=True, seed=1):
    random = np.random.default_rng(seed)
    shapes = [(B, T, D), (B, C), (B, P if projection else C)]
    return tuple(jnp.asarray(random.normal(0, 1, shape), jnp.float32) for shape in shapes)


def naive(
    x, input_kernel, state_kernel, bias, projection, cell, hidden, lengths, cell_clip=None, proj_clip=None,
    reverse=False,
):  # fmt: skip
    """Run each row separately, step by step."""
    rows, cells, hiddens = [], [], []
    for row, length in enumerate(lengths):
        c, h = cell[row], hidden[row]
        outputs = []
        for t in reversed(range(length)) if reverse else range(length):
            i, j, f, o = jnp.split(x[row, t] @ input_kernel + h @ state_kernel + bias, 4)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(j)
            c = c if cell_clip is None else jnp.clip(c, -cell_clip, cell_clip)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            if projection is not None:
                h = h @ projection
                h = h if proj_clip is None else jnp.clip(h, -proj_clip, proj_clip)
            outputs.append(h)
        outputs = outputs[::-1] if reverse else outputs
        rows.append(jnp.stack(outputs + [jnp.zeros_like(h)] * (x.shape[1] - length)))
        cells.append(c)
        hiddens.append(h)
    return jnp.stack(rows), jnp.stack(cells), jnp.stack(hiddens)


compiled = jax.jit(lstm, static_argnames=("cell_clip", "proj_clip", "reverse"))


@functools.partial(jax.jit, static_argnums=(0, 6, 7))
def scored(function, w, x, cell, hidden, lengths, clips, reverse):
    """Return a scalar that depends on all outputs, so that every gradient is nonzero, the outputs, and gradients."""
    lengths = LENGTHS if lengths is None else lengths

    def score(w, x, cell, hidden):
        options = {"cell_clip": clips[0], "proj_clip": clips[1], "reverse": reverse}
        parts = function(x, **w, cell=cell, hidden=hidden, lengths=lengths, **options)
        # Include the final states: gradients must pass through the finished steps of a row.
        mix = [np.random.default_rng(n).normal(size=part.shape).astype(np.float32) for n, part in enumerate(parts)]
        return sum((part.astype(jnp.float32) * m).sum() for part, m in zip(parts, mix, strict=True)), parts

    return jax.value_and_grad(score, argnums=(0, 1, 2, 3), has_aux=True)(w, x, cell, hidden)


@pytest.mark.parametrize(
    ("projection", "clips", "reverse"),
    [
        (True, (0.5, 0.8), True), (True, (None, 0.8), False),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (
            (True, (0.5, 0.8), False), (False, (0.5, None), True), (True, (None, None), True),
            (True, (0.5, None), False), (False, (None, None), False))),
    ],
)  # fmt: skip
def test_values_and_every_gradient(projection, clips, reverse):
    w, (x, cell, hidden) = weights(projection), inputs(projection)
    ours, theirs = (scored(f, w, x, cell, hidden, None, clips, reverse) for f in (lstm, naive))
    if clips[0]:  # check that the clips are active
        assert (np.abs(np.asarray(theirs[0][1][1])) == clips[0]).mean() > 0.2
    if clips[1] and projection:
        assert (np.abs(np.asarray(theirs[0][1][0])) == np.float32(clips[1])).mean() > 0.05
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5, rtol=2e-5), ours, theirs)


@pytest.mark.parametrize("reverse", [False, True])
def test_steps_beyond_the_longest_row(reverse):
    w, (x, cell, hidden), short = weights(), inputs(), np.minimum(LENGTHS, 3)
    wide, narrow = (scored(lstm, w, x[:, :n], cell, hidden, short, (0.5, 0.8), reverse) for n in (T, 3))
    assert not np.asarray(wide[0][1][0][:, 3:]).any() and not np.asarray(wide[1][1][:, 3:]).any()
    np.testing.assert_allclose(wide[0][1][0][:, :3], narrow[0][1][0], atol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), wide[0][1][1:], narrow[0][1][1:])


def test_finished_rows_keep_their_state_and_output_zeros():
    w, (x, cell, hidden) = weights(), inputs()
    outputs, after, last = compiled(x, **w, cell=cell, hidden=hidden, lengths=LENGTHS)
    np.testing.assert_array_equal(after[1], cell[1])
    np.testing.assert_array_equal(last[1], hidden[1])
    for row, n in enumerate(LENGTHS):
        assert not np.asarray(outputs[row, n:]).any()
        if n:
            np.testing.assert_array_equal(last[row], outputs[row, n - 1])


def test_padding_is_ignored_even_if_nan():
    w, (x, cell, hidden) = weights(), inputs()
    beyond = np.arange(T)[None, :, None] >= LENGTHS[:, None, None]
    spoilt = jnp.where(beyond, jnp.nan, x)
    (value, parts), gradients = scored(lstm, w, x, cell, hidden, None, (0.5, 0.8), False)
    (same, spoilt_parts), spoilt_gradients = scored(lstm, w, spoilt, cell, hidden, None, (0.5, 0.8), False)
    assert value == same
    jax.tree.map(np.testing.assert_array_equal, parts, spoilt_parts)
    for name in ("state_kernel", "bias", "projection"):
        np.testing.assert_array_equal(gradients[0][name], spoilt_gradients[0][name])


def test_state_continues_between_windows():
    w, (x, cell, hidden) = weights(), inputs()
    full_outputs, *after = compiled(x, **w, cell=cell, hidden=hidden, lengths=LENGTHS)
    first, *middle = compiled(x[:, :2], **w, cell=cell, hidden=hidden, lengths=np.minimum(LENGTHS, 2))
    second, *end = compiled(x[:, 2:], **w, cell=middle[0], hidden=middle[1], lengths=np.maximum(LENGTHS - 2, 0))
    np.testing.assert_allclose(jnp.concatenate([first, second], 1), full_outputs, atol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), after, end)


def test_gates_of_distinct_words_equal_gates_of_all_positions():
    w, (_, cell, hidden) = weights(), inputs()
    table = jnp.asarray(np.random.default_rng(3).normal(size=(2, 6, D)), jnp.float32)
    words = np.random.default_rng(4).integers(0, 6, (T, B))
    arguments = w["state_kernel"], w["bias"], w["projection"], cell, hidden, LENGTHS, 0.5, 0.8

    def by_table(table, kernel):
        return jnp.square(recurrence(product(table, kernel), *arguments, words=words)[0]).sum()

    def by_place(table, kernel):
        return jnp.square(recurrence(product(look_up(table, words), kernel), *arguments)[0]).sum()

    ours, theirs = (
        jax.jit(jax.value_and_grad(f, argnums=(0, 1)))(table, w["input_kernel"]) for f in (by_table, by_place)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5), ours, theirs)


def test_a_step_against_float64_and_far_from_zero():
    draw = np.random.default_rng(0)
    gates, cell = draw.normal(0, 5, (3, 4 * C)), draw.normal(0, 1, (3, C))
    gates[0] = np.sign(gates[0]) * 1e4
    i, j, f, o = np.split(gates, 4, axis=1)
    sigmoid = scipy.special.expit
    expected = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
    new, hidden = lstm_step(*map(jnp.float32, (gates, np.zeros((C, 4 * C)), np.zeros(4 * C), cell, np.zeros((3, C)))))
    np.testing.assert_allclose(new, expected, atol=1e-6)
    np.testing.assert_allclose(hidden, sigmoid(o) * np.tanh(expected), atol=1e-6)


def find_loops(jaxpr):
    """Yield all loops of a jaxpr, nested ones included."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("scan", "while"):
            yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from find_loops(inner)


def test_loops_carry_only_the_state():
    w, (x, cell, hidden) = weights(), inputs()
    run = functools.partial(lstm, cell=cell, hidden=hidden, lengths=LENGTHS)
    (forward,) = find_loops(jax.make_jaxpr(lambda w: run(x, **w)[0])(w).jaxpr)
    assert sorted(v.aval.shape for v in forward.outvars if v.aval.shape) == sorted([(B, C), (B, P), (T, B, P)])
    loops = list(find_loops(jax.make_jaxpr(jax.grad(lambda w: run(x, **w)[0].sum()))(w).jaxpr))
    assert len(loops) == 2
    for loop in loops:
        states = {v.aval.shape for v in loop.outvars if v.aval.shape[:2] != (T, B)}
        assert {(B, C), (B, P)} <= states <= {(), (B, C), (B, P)}


def test_bfloat16_products_with_float32_state():
    w, (x, cell, hidden) = weights(scale=0.4), inputs()
    exact, near = (
        scored(lstm, w, x.astype(dtype), cell, hidden, None, (3.0, 3.0), False) for dtype in ("float32", "bfloat16")
    )
    assert [part.dtype for part in near[0][1]] == [jnp.bfloat16, jnp.float32, jnp.float32]
    for a, b in zip(exact[0][1], near[0][1], strict=True):
        np.testing.assert_allclose(a, b.astype(jnp.float32), atol=0.03)
    assert {g.dtype for g in jax.tree.leaves(near[1][0])} == {jnp.dtype("float32")}


def test_empty_inputs():
    w, (x, cell, hidden) = weights(), inputs()
    none = np.zeros(B, np.int32)
    outputs, after, last = compiled(x[:, :0], **w, cell=cell, hidden=hidden, lengths=none)
    assert outputs.shape == (B, 0, P)
    np.testing.assert_array_equal(after, cell)
    np.testing.assert_array_equal(last, hidden)
    gradient = scored(lstm, w, x[:, :0], cell, hidden, none, (None, None), False)[1][0]
    assert not any(np.asarray(g).any() for g in jax.tree.leaves(gradient))


def test_single_steps_give_the_outputs_of_the_loop():
    w, (x, cell, hidden) = weights(projection=False, scale=0.5), inputs(projection=False)
    outputs, _, _ = compiled(x, *w.values(), cell, hidden, lengths=jnp.full(B, T))
    step = jax.jit(lambda x, *state: lstm_step(product(x, w["input_kernel"]), w["state_kernel"], w["bias"], *state))
    for t in range(T):
        cell, hidden = step(x[:, t], cell, hidden)
        np.testing.assert_allclose(hidden, outputs[:, t], rtol=0, atol=1e-6)


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("family", ["elmo", "awd_lstm"])
@pytest.mark.devices
def test_gradients_on_a_mesh_with_the_rules_of_the_families(family, projection):
    """With kernels split over two axes, XLA compiles the loop without a projection to wrong gradients."""
    size = 8
    mesh = make_mesh(data=2, fsdp=2, tensor=2)
    random = np.random.default_rng(0)
    shapes = {"input_kernel": (6, 4 * size), "state_kernel": (4 if projection else size, 4 * size), "bias": (4 * size,)}
    shapes |= {"projection": (size, 4)} if projection else {}
    params = {name: jnp.asarray(random.normal(0, 0.5, shape), jnp.float32) for name, shape in shapes.items()}
    x = jnp.asarray(random.normal(0, 1, (8, T, 6)), jnp.float32)
    weight = jnp.asarray(random.normal(0, 1, (8, T, 4 if projection else size)), jnp.float32)
    lengths = np.array([5, 4, 3, 5, 2, 1, 5, 4], np.int32)

    def loss(params, x, weight):
        cell, hidden = jnp.zeros((8, size)), jnp.zeros((8, weight.shape[2]))
        y, _, _ = lstm(x, *(params.get(name) for name in ("input_kernel", "state_kernel", "bias", "projection")),
                       cell, hidden, lengths)  # fmt: skip
        return (y * weight).sum()

    expected = jax.jit(jax.grad(loss))(params, x, weight)
    path = {"elmo": "encoder/forward/layer_0", "awd_lstm": "encoder/layer_0"}[family]
    rules = get_family(family).sharding
    split = {
        name: jax.device_put(value, NamedSharding(mesh, next(
            (spec for rule, spec in rules if re.search(rule, f"{path}/{name}")), PartitionSpec()
        )))
        for name, value in params.items()
    }  # fmt: skip
    rows = NamedSharding(mesh, PartitionSpec(("data", "fsdp")))
    actual = jax.jit(jax.grad(loss))(split, *(jax.device_put(part, rows) for part in (x, weight)))
    assert len(split["state_kernel"].sharding.device_set) == 8
    for name, gradient in expected.items():
        np.testing.assert_allclose(actual[name], gradient, atol=1e-5 * float(jnp.abs(gradient).max()), err_msg=name)
