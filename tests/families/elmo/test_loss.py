"""The language model's loss: both softmaxes, carried state, and word tables with sparse gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import init_elmo_params, zero_state
from bert_elmo_jax.families.elmo.objective import DIRECTIONS, build_draw, build_touched, elmo_loss
from bert_elmo_jax.optim import as_rows, find_rows, take_rows

SIZES = {"cell_size": 12, "projection_size": 8, "dropout": 0.0}
MODELS = {
    "characters": ElmoConfig(vocab_size=60, filters=((1, 4), (2, 4)), num_highways=1, max_characters=8, **SIZES),
    "words": ElmoConfig(input="words", vocab_size=60, **SIZES),
    "tied": ElmoConfig(input="words", vocab_size=60, tie_softmax=True, **SIZES),
}


def batch(config, seed=0, rows=3, length=5):
    random = np.random.default_rng(seed)
    lengths = np.array([length, length - 2, 1], np.int32)
    real = (np.arange(length) < lengths[:, None]).astype(np.float32)
    highest = 10 if config.input == "characters" else 60
    inputs = {"lengths": lengths, "fresh": np.array([True, False, True])}
    for direction in DIRECTIONS:
        inputs[f"words_{direction}"] = random.integers(0, highest, (rows, length)).astype(np.int32)
        inputs[f"{direction}_targets"] = random.integers(0, 60, (rows, length)).astype(np.int32)
        inputs[f"{direction}_weights"] = real
    if config.input == "characters":
        inputs["characters"] = random.integers(1, 262, (1, 10, 8)).astype(np.int32)
    return inputs


@functools.cache
def make(name):
    """Return a configuration, its parameters, and its compiled loss."""
    config, init = MODELS[name], jax.jit(init_elmo_params, static_argnums=(0, 2))
    return config, init(config, jax.random.key(1), True), jax.jit(elmo_loss(config, chunk=7))


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("words", "tied")]


@pytest.mark.parametrize("name", ["characters", *LONG])
def test_the_full_softmax_counts_what_is_real_and_the_state_is_carried_and_forgotten(name):
    config, params, loss = make(name)
    state = zero_state(config, 3)
    terms, _, after = loss(params, batch(config), None, state)
    assert {name: float(weight) for name, (_, weight) in terms.items()} == {"forward": 9.0, "backward": 9.0}
    assert float(terms["forward"][0]) / 9 == pytest.approx(np.log(60), rel=0.2)
    assert jax.eval_shape(loss, params, batch(config), None, None)[2] is None
    assert float(jnp.abs(after.hidden).max()) > 0
    one, _, _ = loss(params, batch(config, seed=5), None, after)
    two, _, _ = loss(params, {**batch(config, seed=5), "fresh": np.ones(3, bool)}, None, after)
    three, _, _ = loss(params, batch(config, seed=5), None, state)
    assert float(one["forward"][0]) != float(two["forward"][0])
    assert float(two["forward"][0]) == pytest.approx(float(three["forward"][0]), rel=1e-6)


@pytest.mark.parametrize("name", ["characters", *LONG])
def test_no_gradient_flows_into_the_step_before(name):
    config, params, loss = make(name)

    def through(params):
        return loss(params, batch(config), None, zero_state(config, 3))[2].hidden.sum()

    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(jax.jit(jax.grad(through))(params)))


@pytest.mark.parametrize("name", ["characters", pytest.param("tied", marks=pytest.mark.long), LONG[0]])
def test_rows_of_tables_give_the_loss_of_whole_tables(name):
    config, params, _ = make(name)
    inputs = batch(config)
    inputs |= build_draw(config, 20)(inputs, jax.random.key(3))
    rows = find_rows(params, build_touched(config)(inputs))
    small, loss = take_rows(params, rows), elmo_loss(config, sampled=True)

    def summed(tables, widen):
        terms = loss(widen(tables), inputs, None, None)[0]
        return sum(total for total, _ in terms.values()), terms

    compute = jax.jit(jax.value_and_grad(summed, has_aux=True), static_argnums=1)
    (_, full_terms), dense = compute(params, dict)
    (_, part), sparse = compute(small, lambda s: as_rows(s, rows))
    assert set(full_terms) == {"forward_sampled", "backward_sampled"}
    for name in full_terms:
        np.testing.assert_allclose(part[name], full_terms[name], rtol=1e-6)
    for ours, theirs in zip(jax.tree.leaves(sparse), jax.tree.leaves(take_rows(dense, rows)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    # Rows that were not read have no gradient in the dense table either.
    bias = np.asarray(dense["lm"]["bias"])
    assert not bias[np.setdiff1d(np.arange(60), np.asarray(rows["lm/bias"]))].any()


def test_each_direction_draws_its_own():
    config = MODELS["words"]
    drawn = build_draw(config, 20)({}, jax.random.key(0))
    assert drawn["forward_negatives"].ids.tolist() != drawn["backward_negatives"].ids.tolist()
