"""Task heads on ModernBERT: the prediction head is between encoder and task head, for pieces and for texts."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.families.init_params import init_task_params
from bert_elmo_jax.families.modernbert.family import FAMILY
from bert_elmo_jax.heads.task_head import TaskHead, task_loss, task_outputs

from .test_model import CONFIG, POSITIONS, SEGMENTS, TOKENS

pytestmark = pytest.mark.usefixtures("strict_dtypes")
SMALL = dataclasses.replace(CONFIG, num_layers=2)
FIRSTS = np.array([[0, 0], [0, 4]], np.int32)
PACKED = {"tokens": TOKENS, "types": TOKENS * 0, "positions": POSITIONS, "segments": SEGMENTS, "nsp_positions": FIRSTS}


def single_batch(start, end):
    """Return the batch of one text of the packed row."""
    row = TOKENS[1:, start:end]
    return {"tokens": row, "types": row * 0, "segments": row * 0 + 1}


def make(kind, labels=1, **fields):
    config = dataclasses.replace(SMALL, **fields)
    head = TaskHead(kind, labels, pools_pieces=FAMILY.task_head("tag").pooled, initializer_range=0.5)
    shapes = jax.eval_shape(lambda: init_task_params(FAMILY, config, head, jax.random.key(0)))
    random = np.random.default_rng(0)
    return config, head, jax.tree.map(lambda leaf: random.normal(0, 0.4, leaf.shape).astype(np.float32), shapes)


def outputs(config, head, params, batch):
    compute = functools.partial(task_outputs, FAMILY.build(config, pooler=head.pooled), head)
    return jax.device_get(jax.jit(compute)(params, batch))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_texts_that_share_a_row_are_classified_as_alone(pooling):
    config, head, params = make("classification", 3, pooling=pooling)
    together = outputs(config, head, params, PACKED)
    for number, (start, end) in enumerate([(0, 4), (4, 8)]):
        scores = outputs(config, head, params, single_batch(start, end))
        np.testing.assert_allclose(together[1, number], scores[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["tags", pytest.param("questions", marks=pytest.mark.long)])
def test_pieces_are_read_through_the_prediction_head(kind):
    config, head, params = make(kind, 5)
    assert head.pooled and set(params["encoder"]["pooler"]) == {"dense", "norm"}
    together = outputs(config, head, params, PACKED)
    apply, params = jax.jit(FAMILY.build(config).apply), jax.device_get(params)
    last = np.asarray(apply({"params": params["encoder"]}, TOKENS, None, POSITIONS, SEGMENTS).last)
    pooler, head_params = params["encoder"]["pooler"], params[head.name]
    x = np.asarray(jax.nn.gelu(last @ pooler["dense"]["kernel"], approximate=False))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config.norm_eps)
    scores = x * pooler["norm"]["scale"] @ head_params["kernel"] + head_params["bias"]
    real = SEGMENTS > 0
    our_scores = np.stack(together, -1) if kind == "questions" else together
    np.testing.assert_allclose(our_scores[real], scores[real], atol=1e-4)


def test_a_frozen_encoder_still_learns_its_prediction_head():
    config, head, params = make("tags", 5)
    loss = task_loss(FAMILY.build(config, pooler=True), head, frozen=True)
    batch = {**single_batch(0, 8), "labels": np.zeros((1, 8), np.int32), "weights": np.ones((1, 8), np.float32)}
    compute = functools.partial(loss, batch=batch, key=None, carry=None)
    grads = jax.jit(jax.grad(lambda p: compute(p)[0]["cross_entropy"][0]))(params)
    assert np.abs(grads["encoder"]["pooler"]["dense"]["kernel"]).max() > 0
    assert not np.abs(grads["encoder"]["layer_1"]["attention"]["query"]["kernel"]).max()
