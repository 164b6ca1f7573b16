"""Heads on packed rows give the losses, gradients and scores of the same examples in separate rows."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from bert_elmo_jax.data.tasks.batches import collate
from bert_elmo_jax.data.tasks.packed_examples import Shape, find_places, lay_out
from bert_elmo_jax.data.tasks.rows import Row
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.heads.task_head import TaskHead, coefficients, task_loss, task_outputs

pytestmark = pytest.mark.usefixtures("strict_dtypes")

CONFIG = BertConfig(
    vocab_size=30, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16, max_positions=16,
    initializer_range=0.5,
)  # fmt: skip
CAUSAL = dataclasses.replace(CONFIG, causal=True)
LENGTHS = (7, 3, 5, 16, 4, 9)
LABELS = 3
CASES = {
    "classification": (CONFIG, TaskHead("classification", LABELS)),
    "classification, causal": (CAUSAL, TaskHead("classification", LABELS, at_end=True)),
    "classification, features": (CONFIG, TaskHead("classification", LABELS, Features((0, -1), "mix"))),
    "regression": (CONFIG, TaskHead("regression")),
    "tags": (CONFIG, TaskHead("tags", LABELS)),
    "choice": (CONFIG, TaskHead("choice")),
    "choice, causal": (CAUSAL, TaskHead("choice", at_end=True)),
    "questions": (CONFIG, TaskHead("questions")),
}


def make_examples(kind, lengths=LENGTHS, seed=0):
    """Examples with targets, for `choice` with two or three choices."""
    draw = np.random.default_rng(seed)
    rows = []
    for number, length in enumerate(lengths):
        sizes = draw.integers(3, 7, 2 + number % 2) if kind == "choice" else [length]
        ids = tuple(draw.integers(5, 30, size).astype(np.int32) for size in sizes)
        types = tuple((np.arange(len(one)) > 2).astype(np.int32) for one in ids)
        targets = {"labels": int(draw.integers(0, 2)), "weights": 1.0}
        if kind == "regression":
            targets["labels"] = float(draw.normal())
        elif kind == "tags":
            labels, weights = draw.integers(0, LABELS, length), draw.integers(0, 2, length)
            targets = {"labels": labels.astype(np.int32), "weights": weights.astype(np.float32)}
        elif kind == "questions":
            targets = {"starts": 2, "ends": length - 1, "weights": 1.0}
        rows.append(Row(number, ids, types, targets))
    return rows


def pack_rows(rows):
    shape = Shape(5, 24)
    places = find_places(np.array([row.size for row in rows]), shape.width)
    assert places.slot.max() > 0 and places.row.max() < shape.rows
    return lay_out(rows, places, shape, 0, max(len(row.ids) for row in rows)), places


@functools.cache
def make_encoder():
    return jax.jit(lambda key: init_params(FAMILY, CONFIG, key))(jax.random.key(0))["encoder"]


def make_params(head):
    """Return parameters of one encoder, and of a head by numpy, which needs no compilation."""
    draw = np.random.default_rng(0)
    outputs = {"choice": 1, "questions": 2}.get(head.kind, head.num_labels)
    params = {"encoder": make_encoder()}
    params[head.name] = {
        "kernel": draw.normal(0, 0.5, (8, outputs)).astype(np.float32),
        "bias": draw.normal(0, 0.5, outputs).astype(np.float32),
    }
    if head.features is not None:
        params["reader"] = {"mix": {"weights": np.array([0.5, -0.5], np.float32), "gamma": np.float32(1.5)}}
    return params


@functools.cache
def make_case(name):
    """Return the head, the parameters, the loss with its gradient, and the scores."""
    config, head = CASES[name]
    params = make_params(head)
    encoder = FAMILY.build(config, pooler=head.pooled)
    loss, weigh = task_loss(encoder, head), coefficients(head.kind)

    def mean(params, batch):
        terms, metrics, _ = loss(params, batch, None, None)
        return sum(weigh[term] * total / weight for term, (total, weight) in terms.items()), terms | metrics

    scores = jax.jit(functools.partial(task_outputs, encoder, head))
    return head, params, jax.jit(jax.value_and_grad(mean, has_aux=True)), scores


LONG = ("regression", "choice, causal", "choice", "classification, features")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name in LONG))
        for name in CASES
        if name != "classification, causal"
    ],
)
def test_packed_rows_change_nothing(name):
    head, params, evaluate, _ = make_case(name)
    rows = make_examples(head.kind)
    packed, _ = pack_rows(rows)
    (loss, terms), gradient = jax.device_get(evaluate(params, packed))
    (expected, expected_terms), of_padded = jax.device_get(evaluate(params, collate(rows, len(rows) + 1, 16, 0)))
    np.testing.assert_allclose(loss, expected, atol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), terms, expected_terms)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), gradient, of_padded)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient[head.name]) if leaf.ndim == 2)


@pytest.mark.parametrize("name", ["classification, causal", "questions"])
def test_an_example_does_not_see_its_neighbours(name):
    head, params, _, scores = make_case(name)
    rows = make_examples(head.kind)
    other = [rows[0], *(dataclasses.replace(row, ids=tuple(5 + ids % 25 for ids in row.ids)) for row in rows[1:])]
    (batch, places), (changed, _) = pack_rows(rows), pack_rows(other)
    at = places.row[0], (slice(places.begin[0], places.begin[0] + 7) if name == "questions" else places.slot[0])
    ours, theirs = (jax.device_get(jax.tree.leaves(scores(params, inputs))) for inputs in (batch, changed))
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a[at], b[at], atol=1e-6)
        assert np.abs(a - b).max() > 1e-3
