"""Compiling from shapes: errors, memory, and the search for the largest batch."""

import jax
import jax.numpy as jnp
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from bert_elmo_jax.plan.plan import find_largest
from bert_elmo_jax.train import make_mesh, make_step, new_state
from bert_elmo_jax.train.ahead_of_time import TooLarge, compile_step, explain


def loss(params, batch, key, carry):
    error = (batch["x"] @ params["w"]) ** 2
    return {"square": (error.sum(), float(error.size))}, {}, carry


def compiled(rows, mesh, rules):
    method = optax.adam(0.1)
    state = jax.eval_shape(lambda key: new_state({"w": jnp.zeros((64, 256))}, method, key), jax.random.key(0))
    batch = {"x": jax.ShapeDtypeStruct((rows, 64), jnp.float32)}
    return compile_step(make_step(loss, method, {"square": 1.0}), state, batch, mesh, rules)


@pytest.mark.devices
def test_memory_per_device():
    weights = 64 * 256 * 4
    replicated = compiled(16, make_mesh(), ())
    split = compiled(16, make_mesh(1, 8), [("w$", P("fsdp"))])
    state = 3 * weights  # with two moments
    assert state < replicated.arguments < state + 16 * 64 * 4 // 8 + 200
    assert state / 8 < split.arguments < state / 8 + 16 * 64 * 4 // 8 + 200
    for one in (replicated, split):
        assert one.aliased > 0.9 * one.outputs - 200  # the state is donated
        assert one.total == one.arguments + one.outputs - one.aliased + one.temporaries + one.code


@pytest.mark.devices
def test_rows_that_do_not_divide():
    with pytest.raises(ValueError, match="x has 12 rows, which 8 devices cannot share equally: choose a multiple of 8"):
        compiled(12, make_mesh(), ())


TPU = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.63G of
15.75G hbm. Exceeded hbm capacity by 1.88G.

Total hbm usage >= 17.88G:
    reserved        258.00M
    program          17.63G"""


TEMPORARIES = """RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for
HLO temporaries (20.66G) exceeds available HBM (15.75G). HLO module: jit_step."""


def test_out_of_memory_errors_have_numbers():
    error = explain(RuntimeError(TEMPORARIES))
    assert (error.needs, error.has) == (20.66 * 2**30, 15.75 * 2**30)
    error = explain(RuntimeError(TPU))
    assert isinstance(error, TooLarge)
    assert (error.needs, error.has) == (17.63 * 2**30, 15.75 * 2**30)
    error = explain(RuntimeError("RESOURCE_EXHAUSTED: out of something else"))
    assert isinstance(error, TooLarge)
    assert (error.needs, error.has) == (None, None)
    other = RuntimeError("INTERNAL: no such operation")
    assert explain(other) is other


@given(st.integers(0, 5000), st.integers(1, 3000), st.integers(1, 40))
def test_the_largest_that_fits(limit, first, tries):
    trials = []

    def within_limit(n):
        trials.append(n)
        return n <= limit

    good, bad = find_largest(within_limit, first, tries=tries)
    assert len(trials) == len(set(trials)) <= tries
    assert trials[0] == first
    assert good <= limit and (good == 0 or good in trials)
    assert bad is None or (bad > limit and bad in trials)
    if tries == 40:
        assert good == limit


def test_the_search_stops_at_the_most():
    assert find_largest(lambda n: True, 3, most=10) == (10, None)


def test_example_of_compile_step():
    import jax.numpy as jnp
    import optax

    from bert_elmo_jax.train import make_mesh, make_step, new_state

    def loss(params, batch, key, carry):
        return {"square": (((batch["x"] @ params["w"]) ** 2).sum(), 1.0)}, {}, carry

    state = jax.eval_shape(lambda key: new_state({"w": jnp.zeros((4, 2))}, optax.sgd(0.1), key), jax.random.key(0))
    step = make_step(loss, optax.sgd(0.1), {"square": 1.0})
    compiled = compile_step(step, state, {"x": jax.ShapeDtypeStruct((16, 4), jnp.float32)}, make_mesh())
    assert (compiled.arguments >= 4 * 2 * 4, compiled.aliased >= 4 * 2 * 4) == (True, True)


def test_example_of_find_largest():
    assert find_largest(lambda n: n <= 37, first=8, tries=9) == (37, 38)
    assert find_largest(lambda n: n <= 37, first=8, tries=4) == (32, 64)


def test_example_of_explain():
    error = explain(RuntimeError("RESOURCE_EXHAUSTED: Ran out of memory. Used 20.50G of 15.75G hbm."))
    assert (error.needs / 2**30, error.has / 2**30) == (20.5, 15.75)
