"""One step is the same computation on one device, on eight, in parts, and under pmap."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.piece_objective import piece_loss
from bert_elmo_jax.losses import draw_negatives, sampled_softmax
from bert_elmo_jax.optim import adagrad, places, values
from bert_elmo_jax.train import RULES, State, make_evaluate, make_mesh, make_step, new_state, over_mesh, over_pmap
from bert_elmo_jax.train.parallel import DEVICES, check_processes

CONFIG = BertConfig(
    vocab_size=64, hidden_size=16, num_layers=1, num_heads=4, feed_forward_size=32, dropout=0.0, attention_dropout=0.0
)
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
PRETRAINING = piece_loss(FAMILY, CONFIG, pairs=True)
COEFFICIENTS = {"mlm": 1.0, "nsp": 1.0}
ROWS, STEPS = 16, 6
many = functools.partial(pytest.param, marks=pytest.mark.devices)
LONG = pytest.mark.long  # its like is in every run of the tests


def loss(params, batch, key, carry):
    terms, metrics, _ = PRETRAINING(params, batch, None, None)
    carry = carry + jnp.stack([batch["tokens"].sum(1), batch["nsp_targets"][:, 0]])
    return terms, {"accuracy": metrics["mlm_accuracy"]}, carry


def batches():
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        yield {
            "tokens": random.integers(0, 64, (ROWS, 8)).astype(np.int32),
            "types": np.zeros((ROWS, 8), np.int32),
            "positions": np.tile(np.arange(8, dtype=np.int32), (ROWS, 1)),
            "segments": np.ones((ROWS, 8), np.int32),
            "mlm_positions": random.integers(0, 8, (ROWS, 3)).astype(np.int32),
            "mlm_targets": random.integers(0, 64, (ROWS, 3)).astype(np.int32),
            # Unequal weights: a mean of means over parts would be another number.
            "mlm_weights": (random.random((ROWS, 3)) < np.linspace(0.05, 0.95, ROWS)[:, None]).astype(np.float32),
            "nsp_positions": np.zeros((ROWS, 1), np.int32),
            "nsp_targets": random.integers(0, 2, (ROWS, 1)).astype(np.int32),
            "nsp_weights": np.ones((ROWS, 1), np.float32),
        }


@functools.cache
def initial_state():
    start = lambda params: new_state(params, OPTIMIZER, jax.random.key(1), jnp.zeros((2, ROWS), int))  # noqa: E731
    return jax.jit(start)(init_params(FAMILY, CONFIG, jax.random.key(0), ("mlm", "nsp")))


def fresh():
    return jax.tree.map(jnp.copy, initial_state())  # a step takes its state for its own


def run(parallel):
    state, lines = parallel.place(fresh()), []
    for batch in batches():
        state, metrics = parallel.step(state, parallel.put(batch))
        lines.append([float(metrics[name]) for name in ("loss", "mlm", "nsp", "accuracy", "gradient_norm")])
    return np.array(lines), jax.device_get(parallel.gather(state))


def on_mesh(accumulate=1, devices=None, **axes):
    step = make_step(loss, OPTIMIZER, COEFFICIENTS, accumulate=accumulate, carry_axis=1)
    return over_mesh(step, fresh(), make_mesh(devices=devices, **axes), (*FAMILY.sharding, *RULES))


@pytest.fixture(scope="module")
def one_device_run():
    return run(on_mesh(devices=jax.devices()[:1]))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: on_mesh(data=8), marks=LONG),
        lambda: on_mesh(data=2, fsdp=2, tensor=2),
        pytest.param(lambda: on_mesh(data=1, fsdp=8), marks=LONG),
        pytest.param(lambda: on_mesh(accumulate=4, devices=jax.devices()[:1]), marks=LONG),
        pytest.param(lambda: on_mesh(accumulate=2, data=4, tensor=2), marks=LONG),
        lambda: over_pmap(make_step(loss, OPTIMIZER, COEFFICIENTS, accumulate=2, carry_axis=1, axis=DEVICES), 1),
    ],
    ids=["data", "data fsdp tensor", "fsdp", "accumulate", "accumulate and mesh", "accumulate and pmap"],
)
@pytest.mark.devices
def test_one_answer_everywhere(make, one_device_run):
    lines, state = run(make())
    np.testing.assert_allclose(lines, one_device_run[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(state.carry, one_device_run[1].carry)
    assert state.step == STEPS
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(one_device_run[1].params), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)  # Adam divides by small numbers


@pytest.mark.devices
def test_parameters_really_are_split():
    parallel = on_mesh(data=1, fsdp=4, tensor=2)
    state = parallel.place(fresh())
    up = state.params["encoder"]["layer_0"]["feed_forward"]["up"]["kernel"]
    assert up.addressable_shards[0].data.shape == (16 // 4, 32 // 2)
    moment = state.optimizer[1][0].mu["encoder"]["layer_0"]["feed_forward"]["up"]["kernel"]
    assert moment.sharding == up.sharding
    batch = next(batches())
    assert parallel.put(batch)["tokens"].addressable_shards[0].data.shape == (4, 8)


def simple(params, batch, key, carry):
    del key
    total = (batch["x"] @ params["w"]).sum()
    return {"sum": (total, batch["weight"].sum())}, {}, carry + batch["x"].sum(1)


def test_numbers_that_are_not_finite_change_nothing():
    optimizer = optax.adam(0.1)
    step = jax.jit(make_step(simple, optimizer, {"sum": 1.0}))
    state = new_state({"w": jnp.ones(2)}, optimizer, jax.random.key(0), carry=jnp.zeros(4))
    good = {"x": np.ones((4, 2), np.float32), "weight": np.ones(4, np.float32)}
    bad = {**good, "x": np.full((4, 2), np.nan, np.float32)}
    one, _ = step(state, good)
    two, metrics = step(one, bad)
    assert (int(two.step), int(two.failed), int(metrics["failed"])) == (2, 1, 1)
    for name in ("params", "optimizer", "carry"):
        jax.tree.map(np.testing.assert_array_equal, getattr(two, name), getattr(one, name))
    assert int(step(two, bad)[0].failed) == 2
    three, _ = step(two, good)
    assert int(three.failed) == 0
    assert not np.array_equal(three.params["w"], one.params["w"])


def test_a_batch_without_weight_has_no_loss():
    optimizer = optax.sgd(0.1)
    state = new_state({"w": jnp.ones(2)}, optimizer, jax.random.key(0), carry=jnp.zeros(4))
    none = {"x": np.ones((4, 2), np.float32), "weight": np.zeros(4, np.float32)}
    state, metrics = jax.jit(make_step(simple, optimizer, {"sum": 1.0}))(state, none)
    assert (float(metrics["loss"]), float(metrics["gradient_norm"]), int(state.failed)) == (0, 0, 0)


def test_shared_entries_reach_every_part():
    def look(params, batch, key, carry):
        del key
        return {"sum": ((jnp.take(batch["table"], batch["x"]) * params["w"]).sum(), batch["x"].size)}, {}, carry

    optimizer = optax.sgd(0.1)
    batch = {"x": np.array([0, 2, 1, 2]), "table": np.array([1.0, 10, 100], np.float32)}
    values = [
        jax.jit(make_step(look, optimizer, {"sum": 1.0}, accumulate=parts, shared=("table",)))(
            new_state({"w": jnp.ones(())}, optimizer, jax.random.key(0)), batch
        )[1]["loss"]
        for parts in (1, 2, 4)
    ]
    assert [float(value) for value in values] == [211 / 4] * 3


@pytest.mark.long
def test_weighing_costs_next_to_nothing():
    """Only the weights remain in the first pass of accumulation."""
    batch = next(batches())

    def flops(accumulate):
        step = make_step(loss, OPTIMIZER, COEFFICIENTS, accumulate=accumulate, carry_axis=1)
        text = jax.jit(step).lower(fresh(), batch).compile().as_text()
        return text.count(" dot(") + text.count("__onednn") + text.count("__cpu$xla")

    assert flops(4) <= flops(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        many(lambda: make_mesh(data=3), r"a mesh of data=3 × fsdp=1 × tensor=1 is for 3 devices, but there are 8"),
        (lambda: make_mesh(fsdp=0), "use whole numbers from 1"),
        many(lambda: on_mesh(data=8).put({"x": np.zeros((12, 1))}), "x has 12 rows, which 8 devices cannot share"),
        many(lambda: over_pmap(lambda s, b: (s, b)).put({"x": np.zeros((12, 1))}), "x has 12 rows, which 8 devices"),
        (
            lambda: run(on_mesh(accumulate=3, devices=jax.devices()[:1])),
            r"16 rows \(on each device\), which cannot be split into 3",
        ),
        (
            lambda: jax.jit(make_step(loss, OPTIMIZER, {"sum": 1.0}))(fresh(), next(batches())),
            r"the loss has the terms \['mlm', 'nsp'\], but the coefficients are for \['sum'\]",
        ),
    ],
)
def test_wrong_shapes(make, message):
    with pytest.raises((ValueError, KeyError), match=message):
        make()


def test_a_mesh_that_splits_a_layer_across_processes_is_refused():
    devices = np.array([SimpleNamespace(process_index=number // 4) for number in range(8)])
    check_processes(devices.reshape(2, 1, 4))
    check_processes(devices.reshape(1, 4, 2))
    with pytest.raises(ValueError, match=r"tensor=8 splits a layer across 2 processes.*lower tensor to a factor of"):
        check_processes(devices.reshape(1, 1, 8))


WORDS = 300


def touched(batch):
    ids = jnp.concatenate([batch["words"].ravel(), batch["negatives"].ids])
    return {"lm/embedding": ids, "lm/bias": ids}


def sampled(params, batch, key, carry):
    """Return the loss of a tiny language model with sampled negatives; its table is whole or in rows."""
    del key
    table, drawn = params["lm"]["embedding"], batch["negatives"]
    total, weight = sampled_softmax(
        jnp.tanh(batch["x"] @ params["kernel"]),
        values(table),
        values(params["lm"]["bias"]),
        places(table, batch["words"]),
        places(table, drawn.ids),
        drawn.expected(batch["words"]),
        drawn.expected(drawn.ids),
        batch["weights"],
    )
    return {"lm": (total, weight)}, {}, carry


def run_sampled(*, rows, pmap=False, accumulate=1, devices=1, tensor=1):
    optimizer = adagrad(0.2, clip=1.0)
    options = {"accumulate": accumulate, "draw": draw_for_test, "touched": touched if rows else None}
    params = {
        "kernel": jnp.eye(8),
        "lm": {"embedding": jax.random.normal(jax.random.key(5), (WORDS, 8)), "bias": jnp.zeros(WORDS)},
    }
    state = new_state(params, optimizer, jax.random.key(0))
    step = make_step(sampled, optimizer, {"lm": 1.0}, axis=DEVICES if pmap else None, **options)
    mesh = make_mesh(tensor=tensor, devices=jax.devices()[:devices])
    parallel = over_pmap(step) if pmap else over_mesh(step, state, mesh)
    state, losses = parallel.place(state), []
    random = np.random.default_rng(0)
    for _ in range(5):
        batch = {
            "x": random.normal(size=(16, 8)).astype(np.float32),
            "words": random.integers(0, WORDS, 16).astype(np.int32),
            "weights": (np.arange(16) % 3 > 0).astype(np.float32),
        }
        state, metrics = parallel.step(state, parallel.put(batch))
        losses.append(float(metrics["loss"]))
    return losses, jax.device_get(parallel.gather(state))


def draw_for_test(batch, key):
    del batch
    return {"negatives": draw_negatives(key, 20, WORDS)}


@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"accumulate": 4}, marks=LONG), many({"devices": 8, "tensor": 4}), many({"pmap": True})],
    ids=["one", "accumulated", "mesh", "pmap"],
)
def test_touched_rows_are_the_same_as_the_whole_table(options):
    losses, state = run_sampled(rows=True, **options)
    expected_losses, expected = run_sampled(rows=False)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(expected.params), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(state.optimizer), jax.tree.leaves(expected.optimizer), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_an_evaluation_leaves_out_metrics_without_weight_and_refuses_such_terms():
    def weigh(params, batch, key, carry):
        return {"term": (batch["x"], batch["term"])}, {"metric": (batch["x"], batch["metric"])}, carry

    def evaluate(**weights):
        batch = {name: np.float32(value) for name, value in {"x": 6.0, "term": 2.0, "metric": 3.0, **weights}.items()}
        return make_evaluate(weigh, lambda: [batch])(State(None, None, {}, None, None, None))

    assert evaluate() == {"term": 3.0, "metric": 2.0}
    assert evaluate(metric=0.0) == {"term": 3.0}
    with pytest.raises(ValueError, match="the held-out text has nothing to compute term on: hold more text out"):
        evaluate(term=0.0)
