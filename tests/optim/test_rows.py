"""Tests that row-sparse updates equal dense ones: with and without duplicates, on many devices, in place."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from bert_elmo_jax.losses import draw_negatives, sampled_softmax
from bert_elmo_jax.optim import (
    Rows,
    adagrad,
    adamw,
    as_rows,
    bert_adam,
    find_rows,
    freeze,
    lamb,
    places,
    put_rows,
    scale_by_depth,
    take_rows,
    values,
)  # fmt: skip
from bert_elmo_jax.optim.rows import map_tables, unique

WORDS, WIDTH, NEGATIVES = 64, 8, 12
TIED, UNTIED = "encoder/token/embedding", "lm/embedding"


def touched(batch, tied):
    targets = jnp.concatenate([batch["targets"].ravel(), batch["negatives"].ids])
    read = batch["words"].ravel()
    if tied:
        return {TIED: jnp.concatenate([read, targets]), "lm/bias": targets}
    return {TIED: read, UNTIED: targets, "lm/bias": targets}


def loss(params, batch, tied):
    """Return the loss of a small language model: the mean of two word vectors, a layer, the sampled softmax."""
    words, output = params["encoder"]["token"]["embedding"], params["lm"]
    table = words if tied else output["embedding"]
    hidden = values(words)[places(words, batch["words"])].mean(axis=1)
    hidden = jnp.tanh(hidden @ params["encoder"]["kernel"])
    targets, drawn = batch["targets"], batch["negatives"]
    at = functools.partial(places, table)
    bias = values(output["bias"])
    if tied:  # the tables have different rows, so align them
        own_rows = places(output["bias"], jnp.arange(WORDS))
        aligned = bias.at[own_rows].get(mode="fill", fill_value=0)
        bias = jnp.zeros(len(values(table))).at[at(jnp.arange(WORDS))].set(aligned, mode="drop")
    return sampled_softmax(
        hidden, values(table), bias, at(targets), at(drawn.ids), drawn.expected(targets), drawn.expected(drawn.ids),
        batch["weights"],
    )  # fmt: skip


def new_params(tied):
    rng = np.random.default_rng(0)
    embedding, output = rng.normal(size=(2, WORDS, WIDTH)).astype(np.float32)
    lm = {"bias": np.zeros(WORDS, np.float32)} | ({} if tied else {"embedding": output})
    return {"encoder": {"token": {"embedding": embedding}, "kernel": np.eye(WIDTH, dtype=np.float32)}, "lm": lm}


def draw_batch(number, rows=16):
    """Return few words with duplicates: among targets, among inputs, between targets and negatives."""
    rng = np.random.default_rng(number)
    return {
        "words": (rng.integers(0, 9, (rows, 2)) ** 2 % WORDS).astype(np.int32),
        "targets": rng.integers(0, 5, rows, np.int32),
        "weights": rng.integers(0, 3, rows).astype(np.float32),
    }


@jax.jit
def draw_shared(number):
    return {"negatives": draw_negatives(jax.random.fold_in(jax.random.key(3), number), NEGATIVES, WORDS)}


def dense_step(optimizer, tied, params, state, batch, shared):
    def objective(params):
        total, weight = loss(params, {**batch, **shared}, tied)
        return 20 * total / weight

    updates, state = optimizer.update(jax.grad(objective)(params), state, params)
    return optax.apply_updates(params, updates), state


def sparse_step(optimizer, tied, params, state, batch, shared, parts=1):
    rows = find_rows(params, touched({**batch, **shared}, tied))
    small, small_state = take_rows(params, rows), take_rows(state, rows)
    weight = batch["weights"].sum()

    def objective(small, part):
        return 20 * loss(as_rows(small, rows), {**part, **shared}, tied)[0] / weight

    def accumulate(total, part):
        return jax.tree.map(jnp.add, total, jax.grad(objective)(small, part)), None

    split = jax.tree.map(lambda a: a.reshape(parts, -1, *a.shape[1:]), batch)
    gradients, _ = jax.lax.scan(accumulate, jax.tree.map(jnp.zeros_like, small), split)
    updates, small_state = optimizer.update(gradients, small_state, small)
    small = optax.apply_updates(small, updates)
    return put_rows(params, small, rows), put_rows(state, small_state, rows)


sparse_step = jax.jit(sparse_step, static_argnums=(0, 1, 6))
dense_step = jax.jit(dense_step, static_argnums=(0, 1))

OPTIMIZERS = {
    "adagrad": lambda: adagrad(0.2, clip=0.5),
    "plain descent": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1)),
    "with a frozen kernel": lambda: freeze(adagrad(0.2, clip=0.5), ["encoder/kernel"]),
    "a frozen table": lambda: freeze(adagrad(0.2, clip=0.5), [TIED]),
}


def equal(one, other, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **{"rtol": 1e-5, "atol": 1e-6, **tolerance}), one, other)


@pytest.mark.parametrize("name, tied", [*((name, False) for name in OPTIMIZERS), ("adagrad", True)])
def test_steps_equal_dense_steps(name, tied):
    optimizer = OPTIMIZERS[name]()
    params = dense = new_params(tied)
    state = dense_state = jax.jit(optimizer.init)(params)
    for number in range(20):
        batch, shared = draw_batch(number), draw_shared(number)
        params, state = sparse_step(optimizer, tied, params, state, batch, shared)
        dense, dense_state = dense_step(optimizer, tied, dense, dense_state, batch, shared)
    equal(params, dense)
    equal(state, dense_state)
    assert any(np.any(a != b) for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(new_params(tied))))
    check_row_sparse(optimizer, new_params(tied), [TIED] if tied else [TIED, UNTIED, "lm/bias"])


def test_untouched_rows_are_unchanged_and_accumulation_equals_the_whole_batch():
    optimizer = OPTIMIZERS["adagrad"]()
    params = jax.tree.map(lambda x: np.where(x > 0, x, np.float32(-0.0)), new_params(False))
    state, batch, shared = optimizer.init(params), draw_batch(0), draw_shared(0)
    after, after_state = sparse_step(optimizer, False, params, state, batch, shared)
    untouched = np.setdiff1d(np.arange(WORDS), np.concatenate([batch["targets"], shared["negatives"].ids]))
    assert 30 < len(untouched) < WORDS
    sums = [optax.tree.get(tree, "sum_of_squares") for tree in (state, after_state)]
    for before, now in ((params, after), sums):
        one, other = (np.asarray(tree["lm"]["embedding"])[untouched] for tree in (before, now))
        assert one.tobytes() == other.tobytes()
    equal((after, after_state), sparse_step(optimizer, False, params, state, batch, shared, 4))


def test_norm_counts_each_row_once():
    """The gradients of a repeated target are added before the norm is computed, as in the dense table."""
    batch, shared = draw_batch(0), draw_shared(0)
    batch["targets"] = np.full(16, 3, np.int32)
    params = new_params(False)

    @jax.jit
    def norms(params, batch):
        rows = find_rows(params, touched({**batch, **shared}, False))
        sparse = jax.grad(lambda p: loss(as_rows(p, rows), {**batch, **shared}, False)[0])(take_rows(params, rows))
        dense = jax.grad(lambda p: loss(p, {**batch, **shared}, False)[0])(params)
        return optax.tree.norm(sparse), optax.tree.norm(dense)

    np.testing.assert_allclose(*norms(params, batch), rtol=1e-6)


LAYOUTS = {
    "tables by rows": {"embedding": P("x"), "bias": P("x")},
    "tables by both": {"embedding": P("y", "x"), "bias": P("x")},
}


@pytest.mark.parametrize("layout", [pytest.param("tables by rows", marks=pytest.mark.long), "tables by both"])
@pytest.mark.devices
def test_eight_devices_equal_one(layout):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    optimizer, params = adagrad(0.2, clip=0.5), new_params(False)
    state, batch, shared = optimizer.init(params), draw_batch(0), draw_shared(0)
    expected = sparse_step(optimizer, False, params, state, batch, shared)

    def place(path, leaf):
        return NamedSharding(mesh, LAYOUTS[layout].get(getattr(path[-1], "key", None), P()))

    spread = jax.tree_util.tree_map_with_path(place, (params, state))
    rows_of_batch = jax.tree.map(lambda _: NamedSharding(mesh, P("x")), batch)
    step = jax.jit(functools.partial(sparse_step, optimizer, False), out_shardings=spread, donate_argnums=(0, 1))
    arrays = jax.device_put((params, state), spread, may_alias=False)
    equal(step(*arrays, jax.device_put(batch, rows_of_batch), shared), expected)


@pytest.mark.devices
def test_pmap_with_the_ids_of_all_devices():
    optimizer, params = adagrad(0.2, clip=0.5), new_params(False)
    state, batch, shared = optimizer.init(params), draw_batch(0), draw_shared(0)

    def step(params, state, batch, shared):
        mine = touched({**batch, **shared}, False)
        rows = find_rows(params, {name: jax.lax.all_gather(ids, "d").ravel() for name, ids in mine.items()})
        small, small_state = take_rows(params, rows), take_rows(state, rows)
        weight = jax.lax.psum(batch["weights"].sum(), "d")
        objective = lambda p: 20 * loss(as_rows(p, rows), {**batch, **shared}, False)[0] / weight  # noqa: E731
        updates, small_state = optimizer.update(jax.lax.psum(jax.grad(objective)(small), "d"), small_state, small)
        small = optax.apply_updates(small, updates)
        return put_rows(params, small, rows), put_rows(state, small_state, rows)

    split = jax.tree.map(lambda a: a.reshape(8, -1, *a.shape[1:]), batch)
    mapped = jax.pmap(step, axis_name="d", in_axes=(None, None, 0, None))(params, state, split, shared)
    expected = sparse_step(optimizer, False, params, state, batch, shared)
    for device in (0, 7):
        equal(jax.tree.map(lambda a, device=device: a[device], mapped), expected)


def test_tables_are_updated_in_place():
    """Neither the temporary memory nor the operations of a step grow with the vocabulary."""

    def compiled(words):
        params = {"lm": {"embedding": jax.ShapeDtypeStruct((words, 32), jnp.float32)}}
        optimizer = adagrad(0.2)

        def step(params, state, ids, x):
            rows = find_rows(params, {UNTIED: ids})
            small, small_state = take_rows(params, rows), take_rows(state, rows)
            gradients = jax.grad(lambda p: jnp.sum(values(as_rows(p, rows)["lm"]["embedding"]) * x))(small)
            updates, small_state = optimizer.update(gradients, small_state, small)
            return put_rows(params, optax.apply_updates(small, updates), rows), put_rows(state, small_state, rows)

        state = jax.eval_shape(optimizer.init, params)
        ids, x = jax.ShapeDtypeStruct((100,), jnp.int32), jax.ShapeDtypeStruct((100, 32), jnp.float32)
        done = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, ids, x).compile()
        return done.memory_analysis().temp_size_in_bytes, done.cost_analysis()["flops"]

    small, large = compiled(1_000), compiled(100_000)
    assert large == small and large[0] < 400_000


@given(st.lists(st.integers(-3, 30), min_size=12, max_size=12), st.sampled_from([5, 20]))
def test_unique_ids_are_sorted_distinct_and_padded(ids, size):
    distinct_ids = np.asarray(jax.jit(unique, static_argnums=1)(np.array(ids), size))
    inside = sorted({i for i in ids if 0 <= i < size})
    assert len(distinct_ids) == min(12, size) and distinct_ids[: len(inside)].tolist() == inside
    assert (np.diff(distinct_ids) > 0).all() and (distinct_ids[len(inside) :] > 2**31 - 100).all()


def test_row_lookup_equals_table_lookup():
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    ids = np.array([[7, 3], [3, 0]], np.int32)

    @jax.jit
    def look_up(table, ids):
        rows = find_rows({"t": table}, {"t": ids})
        subtable = as_rows(take_rows({"t": table}, rows), rows)["t"]
        assert isinstance(subtable, Rows)
        missing = jnp.take(values(subtable), places(subtable, jnp.array([5, -1, 10, 2**31 - 1])), axis=0, mode="fill")
        return values(subtable)[places(subtable, ids)], values(table)[places(table, ids)], missing

    in_rows, in_table, missing = look_up(table, ids)
    np.testing.assert_array_equal(in_rows, table[ids])
    np.testing.assert_array_equal(in_table, table[ids])
    assert np.isnan(missing[:3]).all()


def test_ids_outside_are_dropped_and_tables_matched_by_whole_path():
    params = {"t": jnp.ones((5, 2))}
    rows = find_rows(params, {"t": jnp.array([4, 5, -1, 2])})
    after = put_rows(params, jax.tree.map(jnp.zeros_like, take_rows(params, rows)), rows)["t"]
    assert after[:, 0].tolist() == [1, 1, 0, 1, 0]
    params = {"embedding": jnp.zeros((5, 2)), "lm": {"embedding": jnp.ones((9, 2))}}
    cut = take_rows((params, adagrad().init(params)), {"embedding": jnp.array([1])})
    assert [leaf.shape for leaf in jax.tree.leaves(cut)] == [(1, 2), (9, 2)] * 2
    tables = map_tables(lambda leaf, ids: leaf + len(ids), {"a/b": jnp.arange(10)}, ({"a": {"b": 1}}, {"b": 2}))
    assert tables == ({"a": {"b": 11}}, {"b": 2})
    with pytest.raises(ValueError, match=r"rows of 'lm/embeddings' are touched.*expected lm/embedding"):
        find_rows({"lm": {"embedding": jnp.ones((3, 2))}}, {"lm/embeddings": jnp.array([1])})


def check_row_sparse(optimizer, params, tables):
    """Raise if an optimiser changes a row without a gradient, or its state, in two steps."""

    @jax.jit
    def two_steps(params, gradients):
        updates, state = optimizer.update(gradients, optimizer.init(params), params)
        before = (optax.apply_updates(params, updates), state)
        unchanged = {}
        for name in tables:
            first = find_rows(params, {name: jnp.array([0])})
            without = put_rows(gradients, jax.tree.map(jnp.zeros_like, take_rows(gradients, first)), first)
            updates, state = optimizer.update(without, before[1], before[0])
            after = (optax.apply_updates(before[0], updates), state)
            equal = []
            both = take_rows(before, first), take_rows(after, first)
            map_tables(lambda a, ids, b, equal=equal: equal.append((a == b).all()), first, *both)
            unchanged[name] = jnp.stack(equal).all()
        return unchanged

    ones = jax.tree.map(lambda leaf: np.ones((2,) * leaf.ndim, np.float32), params)
    for name, equal in two_steps(ones, ones).items():
        if not equal:
            raise ValueError(f"this optimiser changes rows of {name} that have no gradient, or their state")


def test_other_optimizers_raise_and_rules_on_paths_pass():
    for optimizer in (
        adamw(0.1),
        bert_adam(0.1),
        lamb(0.1),
        optax.sgd(0.1, momentum=0.9),
        optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.1)),
        optax.chain(adagrad(), optax.add_decayed_weights(0.01)),
    ):
        with pytest.raises(ValueError, match=r"changes rows of lm/embedding that have no gradient"):
            check_row_sparse(optimizer, new_params(False), [UNTIED])
    params = {"encoder": {"layer_0": np.ones(3)}, "lm": np.ones((5, 2))}
    check_row_sparse(optax.chain(adagrad(), scale_by_depth(0.9, {"layer_0": 1}.get)), params, ["lm"])
