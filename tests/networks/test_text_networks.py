"""Networks of labelled texts as functions of arrays: against an oracle, in any batch, with and without an encoder."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from bert_elmo_jax.networks import (
    BcnConfig,
    EsimConfig,
    init_network,
    label_loss,
    label_scores,
    network_coefficients,
    network_shapes,
)

from . import text_oracle

pytestmark = pytest.mark.usefixtures("strict_dtypes")

LAYERS, WIDTH, WORDS, LABELS = 3, 6, 7, 3
SIZES: dict[str, Any] = {
    "num_labels": LABELS, "num_words": WORDS, "word_size": 4, "lstm_size": 5,
    "encoder_layers": LAYERS, "encoder_width": WIDTH, "places": "input,output",
}  # fmt: skip


class Kind(NamedTuple):
    config: Any
    init: Any
    shapes: Any
    loss: Any
    scores: Any  # compiled once for a configuration, and a shape of batch
    oracle: Any
    texts: int  # of an example


BCN = (init_network, network_shapes, label_loss, jax.jit(label_scores, static_argnums=0), text_oracle.bcn)
ESIM = (init_network, network_shapes, label_loss, jax.jit(label_scores, static_argnums=0), text_oracle.esim)
KINDS = {
    "bcn": Kind(BcnConfig(feed_size=3, **SIZES), *BCN, 1),
    "bcn of pairs": Kind(BcnConfig(feed_size=3, pairs=True, **SIZES), *BCN, 2),
    "esim": Kind(EsimConfig(**SIZES), *ESIM, 2),
}
# Pairs of a BCN are computed by numpy, and turned, in every run of the tests.
every_kind = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=name, marks=[pytest.mark.long] * ("pairs" in name)) for name, kind in KINDS.items()]
)


def params_of(kind, config=None):
    """Draw all parameters, also biases and weights of mixtures: zeros would hide errors."""
    draw = np.random.default_rng(0)
    shapes = kind.shapes(config or kind.config)
    return jax.tree.map(lambda leaf: draw.normal(0, 0.5, leaf.shape).astype(np.float32), shapes)


def compute(kind, params, batch, config=None, key=None):
    """Return the scores and the penalty as arrays of numpy."""
    return jax.device_get(kind.scores(config or kind.config, params, batch, key))


def examples_of(kind, lengths, seed=0):
    """Return examples of one text or two, each as (ids, layers)."""
    draw = np.random.default_rng(seed)
    return [
        [
            (draw.integers(0, WORDS + 1, n).astype(np.int32), draw.normal(size=(LAYERS, n, WIDTH)).astype(np.float32))
            for n in (of_example[: kind.texts])
        ]
        for of_example in lengths
    ]


def batch_of(examples, height, width, behind=0.0):
    """Return a batch with `behind` in the layers of padding, and empty rows at its end."""
    many = len(examples[0])
    draw = np.random.default_rng(1)
    batch = {
        "words": draw.integers(0, WORDS + 1, (height, many, width)).astype(np.int32),
        "lengths": np.zeros((height, many), np.int32),
        "layers": np.full((height, many, LAYERS, width, WIDTH), behind, np.float32),
    }
    for n, texts in enumerate(examples):
        for k, (ids, layers) in enumerate(texts):
            batch["words"][n, k, : len(ids)], batch["lengths"][n, k] = ids, len(ids)
            batch["layers"][n, k, :, : len(ids)] = layers
    if many == 1:
        batch = {name: array[:, 0] for name, array in batch.items()}
    batch["labels"] = np.arange(height, dtype=np.int32) % LABELS
    batch["weights"] = (np.arange(height) < len(examples)).astype(np.float32)
    return batch


LENGTHS = [(5, 2), (1, 6), (1, 1), (4, 4)]  # a text of one word; pairs of very different lengths


@pytest.mark.parametrize(
    ("name", "places"),
    [("bcn", "input,output"), ("bcn", ""), ("bcn of pairs", "input"), ("esim", "input,output"), ("esim", "")],
)  # fmt: skip
def test_scores_equal_those_of_numpy(name, places):
    kind, without = KINDS[name], {"encoder_layers": 0, "encoder_width": 0}
    config = dataclasses.replace(kind.config, **({"places": places} if places else without))
    params, examples = params_of(kind, config), examples_of(kind, LENGTHS)
    batch = batch_of(examples, 6, 8)
    if not places:
        del batch["layers"]
    scores, penalty = compute(kind, params, batch, config)
    numbers = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    expected = np.array([kind.oracle(numbers, texts) for texts in examples])
    np.testing.assert_allclose(scores[: len(examples)], expected, atol=2e-5)
    assert np.isfinite(scores).all()  # also of empty rows
    mixes = numbers.get("mix", {})
    assert sorted(mixes) == sorted(filter(None, places.split(",")))
    assert float(penalty) == pytest.approx(config.mix_l2 * sum((m["weights"] ** 2).sum() for m in mixes.values()))


@every_kind
def test_company_padding_and_what_stands_there_change_nothing(kind):
    params, examples = params_of(kind), examples_of(kind, LENGTHS)
    scores = compute(kind, params, batch_of(examples, 6, 8))[0][:4]
    wider = compute(kind, params, batch_of(examples, 6, 12, behind=np.nan))[0]
    np.testing.assert_allclose(wider[:4], scores, atol=1e-6)
    for n, example in enumerate(examples):
        single_scores = compute(kind, params, batch_of([example], 6, 8))[0]
        np.testing.assert_allclose(single_scores[0], scores[n], atol=1e-6)


@every_kind
def test_gradients_reach_all_parameters_and_nothing_comes_from_behind_the_end(kind):
    params, examples = params_of(kind), examples_of(kind, LENGTHS)
    # `<UNK>`, and every word.
    examples[0][0] = (np.arange(WORDS + 1, dtype=np.int32), np.ones((LAYERS, WORDS + 1, WIDTH), np.float32))
    loss = kind.loss(kind.config)

    def total(params, batch):
        terms, _, _ = loss(params, batch, None, None)
        return terms["cross_entropy"][0] + terms["mix_l2"][0], terms

    both = jax.jit(jax.grad(total, has_aux=True))
    batches = (batch_of(examples, 6, 8, behind) for behind in (0.0, np.nan))
    (clean, terms), (wild, _) = (jax.device_get(both(params, batch)) for batch in batches)
    for path, leaf in jax.tree_util.tree_leaves_with_path(clean):
        assert np.isfinite(leaf).all(), path
        assert np.abs(leaf).max() > 0, path
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), clean, wild)
    assert (np.abs(clean["words"]["table"]).max(axis=1) > 0).all()

    batch = batch_of(examples, 6, 8)
    scores, penalty = compute(kind, params, batch)
    right = np.asarray(jax.nn.log_softmax(scores))[np.arange(4), batch["labels"][:4]]
    assert float(terms["cross_entropy"][0]) == pytest.approx(-right.sum(), rel=1e-5)
    assert float(terms["cross_entropy"][1]) == 4  # a row of nothing counts nothing
    assert float(terms["mix_l2"][0]) == pytest.approx(float(penalty))
    assert set(terms) == set(network_coefficients(kind.config))


@pytest.mark.parametrize("name", ["bcn", pytest.param("esim", marks=pytest.mark.long)])
def test_dropout_depends_on_its_key(name):
    kind = KINDS[name]
    params, batch = params_of(kind), batch_of(examples_of(kind, LENGTHS), 6, 8)
    first, again, other = (compute(kind, params, batch, key=jax.random.key(n))[0] for n in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not (first[:4] == other[:4]).all(axis=1).any()


@pytest.mark.parametrize("name", ["bcn", "esim"])
def test_each_rate_of_dropout_draws(name):
    kind = KINDS[name]
    params, batch = params_of(kind), batch_of(examples_of(kind, LENGTHS), 6, 8)
    rates = [name for name in ("word_dropout", "dropout", "mix_dropout") if hasattr(kind.config, name)]
    none = dataclasses.replace(kind.config, **dict.fromkeys(rates, 0.0))

    def draws(config):
        traced = jax.make_jaxpr(lambda key: kind.scores(config, params, batch, key))(jax.random.key(0))
        return str(traced).count("random_bits")

    assert draws(none) == 0
    assert all(draws(dataclasses.replace(none, **{rate: 0.3})) > 0 for rate in rates)


@pytest.mark.parametrize("name", ["bcn of pairs", "esim"])
def test_pairs_may_be_turned(name):
    """The alignment is symmetric; the order of the texts matters only after it."""
    kind = KINDS[name]
    params, examples = params_of(kind), examples_of(kind, LENGTHS)
    first = "maxout_0" if "maxout_0" in params else "hidden"
    halves = np.split(params[first]["kernel"], 2)
    back = params | {first: params[first] | {"kernel": np.concatenate(halves[::-1])}}
    turned = batch_of([texts[::-1] for texts in examples], 6, 8)
    scores = compute(kind, params, batch_of(examples, 6, 8))[0][:4]
    np.testing.assert_allclose(compute(kind, back, turned)[0][:4], scores, atol=1e-5)
    assert not np.allclose(compute(kind, params, turned)[0][:2], scores[:2], atol=1e-3)


@pytest.mark.devices
def test_pairs_on_eight_devices():
    kind, mesh = KINDS["esim"], jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    params, batch = params_of(kind), batch_of(examples_of(kind, LENGTHS * 2), 8, 8)
    spread = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
    full_scores, parts = (kind.scores(kind.config, params, rows)[0] for rows in (batch, spread))
    np.testing.assert_allclose(full_scores, parts, atol=1e-6)


@pytest.mark.parametrize("name", ["bcn", pytest.param("esim", marks=pytest.mark.long)])
def test_an_encoder_that_is_trained_along(name):
    """It reads both texts of a pair separately, and the scores depend on its parameters."""
    kind = KINDS[name]
    config = dataclasses.replace(kind.config, tuned=True)
    batch = batch_of(examples_of(kind, LENGTHS), 6, 8)
    params = jax.tree.map(jnp.asarray, params_of(kind))
    rows = {name: array for name, array in batch.items() if name != "layers"} | {"mine": batch["layers"]}

    def encode(params, batch, key):
        assert batch["words"].shape == (6 * kind.texts, 8)
        return params["scale"] * jnp.moveaxis(jnp.asarray(batch["mine"]), 1, 0)

    scores = jax.jit(lambda scale: label_scores_of(kind, config, params | {"encoder": {"scale": scale}}, rows, encode))
    frozen = kind.scores(kind.config, params, batch)[0]
    np.testing.assert_allclose(scores(jnp.ones(())), frozen, atol=1e-6)
    assert not np.allclose(scores(jnp.ones(()) * 2), frozen)


def label_scores_of(kind, config, params, batch, encode):
    return kind.scores.__wrapped__(config, params, batch, None, encode)[0]


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("bcn", {"places": "between"}, "places='between': use input, output, or several"),
        ("bcn", {"num_labels": 0}, "a biattentive classification network's num_labels is 0; it must be at least 1"),
        ("bcn", {"feed_size": 0}, "feed_size is 0"),
        ("bcn", {"word_dropout": 1.0}, "word_dropout=1.0: a rate must be at least 0 and below 1"),
        ("esim", {"lstm_size": 0}, "an ESIM's lstm_size is 0"),
        ("esim", {"dropout": -0.1}, "dropout=-0.1"),
        ("esim", {"mix_dropout": 1.5}, "mix_dropout=1.5"),
        ("esim", {"encoder_layers": 0}, "set both or neither"),
    ],
)
def test_impossible_settings_are_refused(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(KINDS[kind].config, **changes)


def test_layers_of_another_encoder():
    for kind in KINDS.values():
        params, batch = params_of(kind), batch_of(examples_of(kind, LENGTHS), 4, 8)
        with pytest.raises(ValueError, match=r"layers of 3 x 5 numbers were given to an? .* made for 3 x 6"):
            kind.scores(kind.config, params, batch | {"layers": batch["layers"][..., :5]})


def test_fresh_parameters():
    kind, tables = KINDS["esim"], (np.zeros((1, 4), np.float32), np.ones((WORDS, 4), np.float32))
    with pytest.raises(ValueError, match="word vectors of shape"):
        kind.init(kind.config, jax.random.key(0), tables[0], tables[1][:2])
    fresh = kind.init(kind.config, jax.random.key(0), *tables)
    assert jax.tree.map(jnp.shape, fresh) == jax.tree.map(lambda leaf: leaf.shape, kind.shapes(kind.config))
    np.testing.assert_array_equal(fresh["words"]["table"], tables[1])
    assert float(fresh["mix"]["input"]["gamma"]) == 1.0
