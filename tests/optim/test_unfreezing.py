"""Tests of gradual unfreezing: parameters are unchanged until their step, and then start with new moments."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.optim import adamw, bert_adam, constant, join_later, linear_from_start

PARAMS = {"encoder": {"kernel": jnp.array([-0.0, 1.0, 2.0]), "bias": jnp.array([0.5])}, "head": jnp.array([1.0])}
STARTS = {"encoder": {"kernel": 3, "bias": 3}, "head": 0}


def gradients(step):
    return jax.tree.map(lambda p: jnp.cos(p + step), PARAMS)


def trained(method, steps, params=PARAMS, first=0):
    state, path = method.init(params), []
    update = jax.jit(method.update)
    for step in range(first, steps):
        updates, state = update(gradients(step), state, params)
        params = optax.apply_updates(params, updates)
        path.append(params)
    return path


def test_parameters_are_unchanged_until_their_step():
    path = trained(join_later(STARTS, constant(0.1), lambda rate: adamw(rate, clip=float("inf")), clip=1.0), 5)
    for params in path[:3]:
        for ours, theirs in zip(jax.tree.leaves(params["encoder"]), jax.tree.leaves(PARAMS["encoder"])):
            assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
    assert all((a != b).all() for a, b in zip(jax.tree.leaves(path[3]["encoder"]), jax.tree.leaves(PARAMS["encoder"])))
    assert path[0]["head"] != PARAMS["head"]


def test_groups_start_with_new_moments_on_the_common_schedule():
    rate = linear_from_start(0.1, warmup=2, steps=10)
    path = trained(join_later(STARTS, rate, lambda rate: adamw(rate, clip=float("inf")), clip=1e9), 6)
    # Train the encoder alone, with an optimiser that starts at step 3 of the schedule.
    method = adamw(lambda step: rate(step + 3), clip=1e9)
    alone = trained(method, 6, first=3)
    for ours, theirs in zip(jax.tree.leaves(path[-1]["encoder"]), jax.tree.leaves(alone[-1]["encoder"])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_joining_at_step_0_equals_the_optimizer():
    rate = linear_from_start(0.1, warmup=2, steps=10)
    starts = jax.tree.map(lambda _: 0, PARAMS)
    ours = trained(join_later(starts, rate, lambda rate: bert_adam(rate, clip=float("inf")), clip=0.5), 6)[-1]
    theirs = trained(bert_adam(rate, clip=0.5), 6)[-1]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), ours, theirs)


def test_global_norm_excludes_frozen_parameters():
    method = join_later(STARTS, constant(1.0), optax.sgd, clip=1.0)
    huge = {"encoder": jax.tree.map(lambda p: p * 0 + 1e6, PARAMS["encoder"]), "head": jnp.array([0.5])}
    updates, _ = method.update(huge, method.init(PARAMS), PARAMS)
    assert updates["head"].item() == -0.5


def test_negative_steps_raise():
    with pytest.raises(ValueError, match=r"are \[-1\]; expected 0 or more"):
        join_later({"head": -1}, constant(0.1), optax.sgd, clip=1.0)
