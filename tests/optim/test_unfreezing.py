"""Tests of gradual unfreezing: parameters are unchanged until their step, and then start with new moments."""

import itertools

import jax
import numpy as np
import optax

from bert_elmo_jax.optim import Spans, adamw, bert_adam, constant, linear_from_start, train_during

PARAMS = {
    "encoder": {"kernel": np.array([-0.0, 1, 2], np.float32), "bias": np.array([0.5], np.float32)},
    "head": np.array([1.0], np.float32),
}
STARTS = {"encoder": {"kernel": 3, "bias": 3}, "head": 0}


def join_later(starts, *arguments, **options):
    """Train each parameter from its step in `starts` on, as in gradual unfreezing."""
    return train_during(jax.tree.map(lambda start: Spans(((start, None),)), starts), *arguments, **options)


def gradients(step):
    return jax.tree.map(lambda p: np.cos(p + np.float32(step)), PARAMS)


def trained(method, steps, params=PARAMS, first=0):
    state, path = method.init(params), []

    @jax.jit
    def update(gradients, state, params):
        updates, state = method.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for step in range(first, steps):
        params, state = update(gradients(step), state, params)
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
    encoder_path = trained(method, 6, first=3)
    for ours, theirs in zip(jax.tree.leaves(path[-1]["encoder"]), jax.tree.leaves(encoder_path[-1]["encoder"])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_joining_at_step_0_equals_the_optimizer():
    rate = linear_from_start(0.1, warmup=2, steps=10)
    starts = jax.tree.map(lambda _: 0, PARAMS)
    ours = trained(join_later(starts, rate, lambda rate: bert_adam(rate, clip=float("inf")), clip=0.5), 6)[-1]
    theirs = trained(bert_adam(rate, clip=0.5), 6)[-1]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), ours, theirs)


def test_global_norm_excludes_frozen_parameters():
    method = join_later(STARTS, constant(1.0), optax.sgd, clip=1.0)
    huge = {"encoder": jax.tree.map(lambda p: p * 0 + 1e6, PARAMS["encoder"]), "head": np.float32([0.5])}
    updates, _ = jax.jit(method.update)(huge, method.init(PARAMS), PARAMS)
    assert updates["head"].item() == -0.5
    assert sorted(method.init(PARAMS).groups) == ["0", "3"]


LATE = {"encoder": {"kernel": Spans(((1, 3), (5, None))), "bias": Spans(())}, "head": Spans(((0, 2),))}


def test_parameters_move_in_their_spans_only():
    path = [PARAMS, *trained(train_during(LATE, constant(0.1), lambda rate: adamw(rate, clip=9.0), clip=9.0), 8)]
    moved = [
        [np.any(a != b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after))]
        for before, after in itertools.pairwise(path)
    ]
    bias, kernel, head = ([n for n, row in enumerate(moved) if row[leaf]] for leaf in range(3))
    assert (bias, kernel, head) == ([], [1, 2, 5, 6, 7], [0, 1])
    assert np.asarray(path[1]["encoder"]["kernel"]).tobytes() == np.asarray(PARAMS["encoder"]["kernel"]).tobytes()


def test_each_span_starts_with_new_moments_at_the_rate_of_its_step():
    rate = linear_from_start(0.1, warmup=2, steps=10)
    path = trained(train_during(LATE, rate, lambda rate: adamw(rate, clip=float("inf")), clip=1e9), 8)
    late_path = trained(adamw(lambda step: rate(step + 5), clip=1e9), 8, path[4], first=5)
    for ours, theirs in zip(path[5:], late_path):
        np.testing.assert_allclose(ours["encoder"]["kernel"], theirs["encoder"]["kernel"], rtol=1e-6)


def test_a_parameter_that_is_never_trained_has_no_state_and_its_gradient_is_not_read():
    method = train_during(LATE, constant(0.1), adamw, clip=1.0)
    state = method.init(PARAMS)
    assert sum(leaf.size for leaf in jax.tree.leaves(state) if leaf.ndim) == 2 * (3 + 1)
    broken = {"encoder": {**PARAMS["encoder"], "bias": np.float32([np.nan])}, "head": PARAMS["head"]}
    updates, _ = jax.jit(method.update)(broken, state, PARAMS)
    assert np.isfinite(updates["head"]).all() and np.signbit(updates["encoder"]["bias"]).all()
