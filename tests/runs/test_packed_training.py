"""A training step on packed rows: the same update on one device, on eight, with accumulation, and with padded rows."""

import jax
import numpy as np
import optax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.batches import collate
from bert_elmo_jax.data.tasks.packed_batches import PackedBatches, Shape
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.heads.task_head import TaskHead, coefficients, task_loss

from ..heads.test_packed_rows import CONFIG, make_examples, make_params

WAYS = {"one device": (1, 1), "eight devices": (8, 1), "accumulation": (1, 4)}


@pytest.fixture(scope="module")
def choice():
    """Return a head, its parameters, fifteen examples of two or three choices, and their update in padded rows."""
    head = TaskHead("choice", dropout=0.0)
    params = jax.tree.map(np.asarray, make_params(head))
    rows = make_examples("choice", range(15))
    return head, params, rows, update(head, params, collate(rows, 16, 16, 0), 1, 1)


def update(head, params, batch, devices, accumulate):
    config = CONFIG.__class__(**{**vars(CONFIG), "dropout": 0.0, "attention_dropout": 0.0})
    loss = task_loss(FAMILY.build(config, pooler=True), head)
    step = train.make_step(loss, optax.sgd(1.0), coefficients(head.kind), accumulate=accumulate)
    state = train.new_state(params, optax.sgd(1.0), jax.random.key(0))
    parallel = train.over_mesh(step, state, train.make_mesh(devices=jax.devices()[:devices]))
    state, metrics = parallel.step(parallel.place(state), parallel.put(batch))
    return jax.device_get((state.params, metrics["loss"]))


@pytest.mark.parametrize("way", [pytest.param(way, marks=[pytest.mark.devices] * (WAYS[way][0] > 1)) for way in WAYS])
def test_the_same_update(choice, way):
    head, params, rows, expected = choice
    devices, accumulate = WAYS[way]
    batch = PackedBatches((Shape(8, 40),), 0, devices * accumulate, choices=3)(rows, 16)
    assert batch["tokens"].shape == (8, 40) and batch["nsp_positions"].shape == (8, 10, 3)
    packed_update = update(head, params, batch, devices, accumulate)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), packed_update, expected)
