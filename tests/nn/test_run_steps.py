"""The loop over the steps of one or several networks: skipped steps, and results."""

import functools

import jax
import jax.numpy as jnp
import pytest

from bert_elmo_jax.nn.run_steps import Loop, run_steps

from .test_lstm import find_loops

XS = jnp.arange(1, 6)


def counter(ran, reverse):
    """Return a loop that sums XS, and appends to `ran` what it reads."""

    def step(t, carry):
        jax.debug.callback(lambda x: ran.append(int(x)), XS[t], ordered=False)
        return carry + XS[t], 10 * XS[t]

    return Loop(step, jnp.array(1), jnp.full(5, -1), reverse)


@pytest.mark.parametrize("longest", [0, 2, 5])
def test_steps_after_the_longest_row_do_not_run(longest):
    ran = [], []
    loops = [counter(each, reverse) for each, reverse in zip(ran, (False, True))]
    loop_results = jax.jit(lambda lengths: run_steps(loops, lengths))(jnp.array([longest, 0]))
    jax.effects_barrier()
    real = list(range(1, longest + 1))
    for each, (last, outputs) in zip(ran, loop_results, strict=True):
        assert sorted(each) == real
        assert int(last) == 1 + sum(real)
        assert outputs.tolist() == [10 * x for x in real] + [-1] * (5 - longest)


def test_reverse_begins_with_the_last_real_step():
    def step(t, carry):
        return 10 * carry + XS[t], carry

    ahead, back = (Loop(step, jnp.array(0), jnp.full(5, -1), reverse) for reverse in (False, True))
    (first, _), (last, outputs) = run_steps([ahead, back], jnp.array([1, 3]))
    assert (int(first), int(last), outputs.tolist()) == (123, 321, [32, 3, 0, -1, -1])


@pytest.mark.parametrize("backend", ["gpu", "tpu"])
def test_accelerators_run_every_step_and_a_gpu_unrolls_trained_loops(backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    xs = jnp.arange(50)
    loop = Loop(lambda t, carry: (carry + xs[t], xs[t]), jnp.array(0), jnp.zeros(50, jnp.int32))
    for trained in (False, True):
        run = functools.partial(run_steps, [loop], trained=trained)
        (eqn,) = find_loops(jax.make_jaxpr(run)(jnp.array([3])).jaxpr)
        assert eqn.params["unroll"] == (20 if trained and backend == "gpu" else 1)
        assert not any(inner.primitive.name == "cond" for inner in eqn.params["jaxpr"].eqns)
    ((last, outputs),) = run_steps([loop], jnp.array([3]))
    assert (int(last), outputs.tolist()) == (sum(range(50)), list(range(50)))
