"""Losses of tasks: by hand, masked equals subset, gradients, and frozen encoders without gradients."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_task_params, param_shapes
from bert_elmo_jax.heads.features import Features, Reader
from bert_elmo_jax.heads.task_head import TaskHead, coefficients, task_loss, task_outputs
from bert_elmo_jax.weights.parameter_tree import flatten

CONFIG = BertConfig(
    vocab_size=30, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16, max_positions=16,
    initializer_range=0.5,
)  # fmt: skip
MIX, LSTM = Features((0, -1), "mix"), Features((0, 1), lstm_layers=2, lstm_size=3)
RANGE = {"initializer_range": CONFIG.initializer_range}
# Packed rows of all kinds, and padding among them, are in test_packed_rows.py.
HEADS = [("choice", None), ("questions", None), ("classification", LSTM), ("tags", MIX)]


def heads_with_quick(*kinds):
    """Return all heads; heads of other kinds are tested at night."""
    return [pytest.param(*head, marks=[pytest.mark.long] * (head[0] not in kinds)) for head in HEADS]


outputs_of = jax.jit(task_outputs, static_argnums=(0, 1, 5))


def init(config, head, seed=0):
    """Return random parameters, by numpy, which needs no compilation."""
    shapes = jax.eval_shape(lambda: init_task_params(FAMILY, config, head, jax.random.key(0)))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: random.normal(0, 0.5, leaf.shape).astype(np.float32), shapes)


def make_head(kind, features=None, **options):
    return TaskHead(kind, 3 if kind in ("classification", "tags") else 1, features, **RANGE, **options)


def encoder_of(head, config=CONFIG):
    return FAMILY.build(config, pooler=head.pooled)


def batch_of(kind, rows=4, width=7, seed=0):
    """Return a batch of rows of different lengths; the last one is empty."""
    draw = np.random.default_rng(seed)
    shape = (rows, 3, width) if kind == "choice" else (rows, width)
    lengths = draw.integers(3, width, shape[:-1])
    lengths[-1] = 0
    segments = (np.arange(width) < lengths[..., None]).astype(np.int32)
    batch = {"tokens": draw.integers(5, 30, shape).astype(np.int32) * segments, "types": segments * 0}
    batch |= {"segments": segments, "weights": (np.arange(rows) < rows - 1).astype(np.float32)}
    if kind == "tags":
        batch |= {"labels": draw.integers(0, 3, shape).astype(np.int32), "weights": segments.astype(np.float32)}
    elif kind == "questions":
        batch |= {name: draw.integers(0, 3, rows).astype(np.int32) for name in ("starts", "ends")}
    else:
        numbers = draw.normal(size=rows).astype(np.float32)
        batch["labels"] = numbers if kind == "regression" else draw.integers(0, 3, rows).astype(np.int32)
    return batch


def part(batch, rows):
    return {name: values[rows] for name, values in batch.items()}


@pytest.mark.parametrize(("kind", "features"), heads_with_quick("choice", "classification"))
def test_rows_without_weight_change_nothing_and_gradients_are_finite(kind, features):
    head = make_head(kind, features)
    params = init(CONFIG, head)
    loss, batch = task_loss(encoder_of(head), head), batch_of(kind)

    def mean(params, batch):
        terms, _, _ = loss(params, batch, None, None)
        assert set(terms) == set(coefficients(kind))
        return sum(coefficients(kind)[name] * total / weight for name, (total, weight) in terms.items())

    both = jax.jit(jax.value_and_grad(mean))
    batch_loss, gradient = both(params, batch)
    other = {name: values.copy() for name, values in batch.items()}
    other["tokens"][-1], other["segments"][-1] = 7, 1  # a row that is there, but has no weight
    same, also = both(params, other)
    np.testing.assert_allclose(batch_loss, same, rtol=2e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), gradient, also)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient[head.name]) if leaf.ndim == 2)


@pytest.mark.parametrize(("kind", "features"), heads_with_quick("questions", "tags"))
def test_padding_changes_nothing(kind, features):
    head = make_head(kind, features)
    params = init(CONFIG, head, 1)
    batch = part(batch_of(kind), slice(0, 3))
    wide = {
        name: np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, 4)])
        if name in ("tokens", "types", "segments")
        else values
        for name, values in batch.items()
    }
    near, far = (outputs_of(encoder_of(head), head, params, inputs) for inputs in (batch, wide))
    if kind in ("tags", "questions"):
        real = batch["segments"] > 0
        near, far = (jax.tree.map(lambda side: np.asarray(side)[:, :7][real], one) for one in (near, far))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), near, far)


def test_classification_by_hand():
    head = make_head("classification")
    params = init(CONFIG, head)
    batch = part(batch_of("classification"), slice(0, 3))
    logits = np.asarray(outputs_of(encoder_of(head), head, params, batch), np.float64)
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(3), batch["labels"]]
    terms, metrics, carry = jax.jit(task_loss(encoder_of(head), head))(params, batch, None, np.float32(7))
    np.testing.assert_allclose(terms["cross_entropy"], [losses.sum(), 3], rtol=1e-5)
    assert float(metrics["accuracy"][0]) == (logits.argmax(1) == batch["labels"]).sum()
    assert carry == 7
    weights = np.array([1.0, 2.0, 5.0])
    terms, _, _ = jax.jit(task_loss(encoder_of(head), head, weights.tolist()))(params, batch, None, None)
    scaled = weights[batch["labels"]]
    np.testing.assert_allclose(terms["cross_entropy"], [(scaled * losses).sum(), scaled.sum()], rtol=1e-5)
    with pytest.raises(ValueError, match="2 class weights were given for 3 labels"):
        task_loss(encoder_of(head), head, [1.0, 2.0])


def test_regression_by_hand():
    head = make_head("regression")
    params, batch = init(CONFIG, head), batch_of("regression")
    outputs = np.asarray(outputs_of(encoder_of(head), head, params, batch))[:3]
    terms, _, _ = jax.jit(task_loss(encoder_of(head), head))(params, batch, None, None)
    np.testing.assert_allclose(terms["squared_error"], [((outputs - batch["labels"][:3]) ** 2).sum(), 3], rtol=1e-5)


def test_a_choice_that_is_not_there_is_never_chosen():
    head, batch = make_head("choice"), batch_of("choice")
    batch["segments"][0, 2] = 0
    assert np.asarray(outputs_of(encoder_of(head), head, init(CONFIG, head), batch))[0, 2] < -1e8


@pytest.mark.parametrize("kind", ["tags", "questions"])
def test_dropout_depends_on_the_key(kind):
    head, batch = make_head(kind), batch_of(kind)
    one, same, other = (
        np.asarray(outputs_of(encoder_of(head), head, init(CONFIG, head), batch, jax.random.key(n))) for n in (1, 1, 2)
    )
    assert (one == same).all()
    assert (one != other).any()


def test_a_frozen_encoder_gets_no_gradient_and_no_dropout():
    head = make_head("classification", dropout=0.0)
    params, batch = init(CONFIG, head), batch_of("classification")

    def mean(params, key):
        total, weight = task_loss(encoder_of(head), head, frozen=True)(params, batch, key, None)[0]["cross_entropy"]
        return total / weight

    of = jax.jit(mean)
    assert of(params, jax.random.key(1)) == of(params, None)
    gradient = jax.jit(jax.grad(mean))(params, None)
    pooler = gradient["encoder"].pop("pooler")
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient["encoder"]))
    assert np.asarray(pooler["kernel"]).any()


def test_a_bilstm_reads_both_ways_and_not_beyond_the_end():
    reader = Reader(Features((0,), lstm_layers=1, lstm_size=3))
    layers = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(np.float32)
    real = np.array([[True] * 6, [True] * 4 + [False] * 2])
    variables = jax.jit(reader.init)(jax.random.key(1), layers, real)
    apply = jax.jit(reader.apply)
    outputs = np.asarray(apply(variables, layers, real))

    def changed(row, place):
        other = layers.copy()
        other[0, row, place] += 1
        return np.abs(np.asarray(apply(variables, other, real)) - outputs)[row] > 1e-7

    assert changed(0, 2).any(axis=-1).all() and not changed(1, 5).any()
    assert changed(0, 3)[:, :3].any(-1).tolist() == [False] * 3 + [True] * 3
    assert not outputs[1, 4:].any()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": ()}, "features without layers"),
        ({"layers": "all"}, "features.layers='all' is a text"),
        ({"lstm_size": 0}, "lstm_size=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
    ],
)
def test_features_that_cannot_be_meant(as_users_run, fields, message):
    with pytest.raises(ValueError, match=message):
        Features(**fields)


def test_layers_that_are_not_there(as_users_run):
    with pytest.raises(ValueError, match="there is no layer 9"):
        Features((9,)).width(8, 2)
    with pytest.raises(ValueError, match=r"features.combine='sum' is not known; use concat or mix"):
        Features(combine="sum")


@pytest.mark.parametrize(("features", "width"), [(MIX, 8), (LSTM, 6)])
def test_shapes_of_a_reader(features, width):
    """Two BiLSTMs of 3 read two layers of 8, then each other; a mix has a weight per layer."""
    params = init(CONFIG, make_head("tags", features))
    if features is MIX:
        reader = {"mix/weights": (2,), "mix/gamma": ()}
    else:
        sizes = {"layer_0": 16, "layer_1": 6}
        reader = {}
        for path, inputs in ((f"{layer}/{way}", n) for layer, n in sizes.items() for way in ("forward", "backward")):
            reader |= {f"{path}/input_kernel": (inputs, 12), f"{path}/state_kernel": (3, 12), f"{path}/bias": (12,)}
    assert {path: leaf.shape for path, leaf in flatten(params["reader"]).items()} == reader
    assert params["tag"]["kernel"].shape == (width, 3)
    shapes = param_shapes(FAMILY, CONFIG, ("tag",), pooler=False, outputs={"tag": 3}, features=features)
    assert shapes == {path: leaf.shape for path, leaf in flatten(params).items()}


@pytest.mark.parametrize("kind", ["classification", "choice"])
def test_from_left_to_right_the_last_piece_stands_for_the_row(kind):
    """The first piece has seen no other: the last word changes the scores, and padding does not."""
    config = dataclasses.replace(CONFIG, causal=True)
    head, batch = make_head(kind, at_end=True), batch_of(kind)
    params = init(config, head)
    # Replace the last piece of a row (or choice) of two or more.
    row = (0,) if kind == "classification" else (0, 1)
    last = int(batch["segments"][row].sum()) - 1
    other, padded = ({name: x.copy() for name, x in batch.items()} for _ in range(2))
    other["tokens"][(*row, last)] = 5 + (batch["tokens"][(*row, last)] - 4) % 25
    padded["tokens"][(*row, slice(last + 1, None))] = 9
    scores, changed, same = (
        np.asarray(outputs_of(encoder_of(head, config), head, params, one)) for one in (batch, other, padded)
    )
    assert np.abs(scores - changed)[row].max() > 1e-3
    np.testing.assert_allclose(scores[0], same[0], atol=1e-6)
    np.testing.assert_allclose(scores[1:-1], changed[1:-1], atol=1e-6)
