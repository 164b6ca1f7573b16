"""The tagger as a function of arrays: places of an encoder, padding, and the terms of its loss."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.data.tasks.labels import legal_transitions
from bert_elmo_jax.losses import crf
from bert_elmo_jax.networks import (
    Tagger,
    TaggerConfig,
    WordInput,
    best_tags,
    init_network,
    network_coefficients,
    network_shapes,
    tagger_loss,
)
from bert_elmo_jax.networks.word_network import run_network

LAYERS, WIDTH, WORDS, TAGS = 3, 6, 7, ("B-LOC", "I-LOC", "O")
CONFIG = TaggerConfig(
    num_tags=3, num_words=WORDS, word_size=4, lstm_size=5, scheme="IOB2", encoder_layers=LAYERS, encoder_width=WIDTH
)
LEGAL = legal_transitions(TAGS, "IOB2")


def params_of(config, seed=0):
    """Draw all parameters by numpy, which needs no compilation."""
    draw = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: draw.normal(0, 0.5, leaf.shape).astype(np.float32), network_shapes(config))


score = jax.jit(lambda config, params, batch, key=None: run_network(config, params, batch, key)[0], static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def loss_and_gradients(config, params, batch):
    """Return the terms of the loss, and the gradient of the CRF's."""

    def total(params):
        terms, _, _ = tagger_loss(config)(params, batch, None, None)
        return terms["crf"][0], terms

    (_, terms), gradient = jax.value_and_grad(total, has_aux=True)(params)
    return terms, gradient


def batch_of(config, lengths=(5, 1, 0), seed=0, width=6):
    draw = np.random.default_rng(seed)
    rows = len(lengths)
    batch = {
        "words": draw.integers(0, config.num_words + 1, (rows, width)).astype(np.int32),
        "lengths": np.array(lengths, np.int32),
        "tags": draw.integers(0, config.num_tags, (rows, width)).astype(np.int32),
    }
    if config.characters:
        batch["characters"] = draw.integers(1, 262, (rows, width, 8)).astype(np.int32)
    if config.encoder_layers:
        size = (rows, config.encoder_layers, width, config.encoder_width)
        batch["layers"] = draw.normal(size=size).astype(np.float32)
    return batch


PLAIN = dataclasses.replace(CONFIG, encoder_layers=0, encoder_width=0, dropout=0.0)


def test_a_window_by_hand():
    """The first of two layers reads words and features around each word, and the padding outside of the sentence."""
    config = dataclasses.replace(
        PLAIN, cell="window", window=3, num_features=4, feature_columns=2, feature_size=2, lstm_size=5
    )
    params, batch = params_of(config), batch_of(config)
    batch["features"] = np.random.default_rng(1).integers(0, 4, (3, 6, 2)).astype(np.int32)
    assert [params[f"layer_{n}"]["kernel"].shape for n in range(2)] == [(3, 8, 5), (3, 5, 5)]
    table = np.concatenate([params["words"]["specials"], params["words"]["table"]])
    x = np.concatenate([table[batch["words"][0]], params["features"][batch["features"][0]].reshape(6, -1)], axis=1)
    x = x[:5]  # the words of the first sentence
    for layer in (params["layer_0"], params["layer_1"]):
        padded = [layer["padding"], *x, layer["padding"]]
        sums = [sum(padded[t + n] @ layer["kernel"][n] for n in range(3)) + layer["bias"] for t in range(5)]
        x = np.clip(sums, -1, 1)
    expected = x @ params["tags"]["kernel"] + params["tags"]["bias"]
    np.testing.assert_allclose(score(config, params, batch)[0, :5], expected, atol=1e-5)
    gradient = jax.device_get(loss_and_gradients(config, params, batch)[1])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)) and gradient["features"].any()
    wild = jax.tree.map(np.copy, batch)
    wild["words"][0, 5], wild["features"][0, 5] = 3, 1  # behind the end
    np.testing.assert_allclose(score(config, params, wild)[0, :5], expected, atol=1e-5)


def test_a_linear_tagger_by_hand():
    """A score is the sum of the weights of the words and features of the window, each for its place and tag."""
    config = dataclasses.replace(
        PLAIN, cell="linear", window=3, word_size=9, num_features=4, feature_columns=1, feature_size=9
    )
    assert TaggerConfig.fixed_width({"cell": "linear", "window": 3}, 3) == 9
    assert not any(leaf.any() for leaf in jax.tree.leaves(jax.device_get(zero_params(config))))
    params, batch = params_of(config), batch_of(config)
    batch["features"] = np.random.default_rng(1).integers(0, 4, (3, 6, 1)).astype(np.int32)
    table = np.concatenate([params["words"]["specials"], params["words"]["table"]]).reshape(-1, 3, 3)
    weights = table[batch["words"][0]] + params["features"].reshape(-1, 3, 3)[batch["features"][0, :, 0]]
    padded = [params["padding"], *weights[:5], params["padding"]]
    expected = [params["bias"] + sum(padded[t + n][n] for n in range(3)) for t in range(5)]
    np.testing.assert_allclose(score(config, params, batch)[0, :5], expected, atol=1e-5)


def zero_params(config):
    """Return the initial parameters of a linear tagger, without its transitions."""
    tables = (np.zeros((rows, config.word_size), np.float32) for rows in (1, WORDS))
    fresh = init_network(config, jax.random.key(0), *tables)
    return {name: part for name, part in fresh.items() if name != "transitions"}


PLACES = ("between", "output", "input,between,output")


@pytest.mark.parametrize("places", PLACES)
def test_where_an_encoder_comes_in(places):
    config = dataclasses.replace(CONFIG, places=places, characters=places == "output")
    params = params_of(config)
    extra = 128 if config.characters else 0
    inputs = {"input": 4 + extra, "between": 10, "output": 10}
    widths = {place: size + WIDTH * (place in places) for place, size in inputs.items()}
    shapes = jax.tree.map(jnp.shape, params)
    assert shapes["layer_0"]["forward"]["input_kernel"][0] == widths["input"]
    assert shapes["layer_1"]["forward"]["input_kernel"][0] == widths["between"]
    assert shapes["tags"]["kernel"][0] == widths["output"]
    assert sorted(shapes["mix"]) == sorted(places.split(","))
    tables = (np.zeros((rows, 4), np.float32) for rows in (1, WORDS))
    fresh = jax.eval_shape(functools.partial(init_network, config), jax.random.key(0), *tables)
    assert jax.tree.map(lambda leaf: leaf.shape, fresh) == shapes
    if "," not in places:
        return  # the network with all places has the gradients of each
    _, gradient = jax.device_get(loss_and_gradients(config, params, batch_of(config)))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    for place, mix in gradient["mix"].items():
        assert np.abs(mix["weights"]).sum() > 0 and np.abs(mix["gamma"]) > 0, place


CHARACTERS = [("lstm", "cnn", 1, 7), pytest.param("gru", "gru", 1, 14, marks=pytest.mark.long), ("gru", "lstm", 2, 14)]


@pytest.mark.parametrize(("cell", "encoder", "layers", "width"), CHARACTERS)
def test_cells_and_characters(cell, encoder, layers, width):
    """A vector of the characters follows every word's own vector, and every parameter has a gradient."""
    config = dataclasses.replace(
        CONFIG, cell=cell, places="between", characters=True, character_encoder=encoder, character_size=7,
        character_embedding_size=3, character_layers=layers,
    )  # fmt: skip
    params, batch = params_of(config), batch_of(config)
    first = params["layer_0"]["forward"]
    assert first["input_kernel"].shape == (4 + width, {"lstm": 20, "gru": 15}[cell])
    assert ("state_bias" in first) == (cell == "gru")
    assert params["layer_1"]["backward"]["input_kernel"].shape[0] == 10 + WIDTH
    reader = params["words"]["characters"]
    assert sum(name.startswith(("layer", "conv")) for name in reader) == layers
    assert reader["embedding"].shape == (261, 3)

    def total(characters):
        terms, gradient = jax.device_get(loss_and_gradients(config, params, {**batch, "characters": characters}))
        return float(terms["crf"][0]), gradient

    value, gradient = total(batch["characters"])
    gradient.pop("mix")  # of the only layer; its other parts are in test_where_an_encoder_comes_in
    named = jax.tree_util.tree_flatten_with_path(gradient)[0]
    assert all(np.isfinite(leaf).all() and leaf.any() for _, leaf in named), named
    other = batch["characters"].copy()
    other[0, 4] = 1 + other[0, 4] % 255
    assert abs(total(other)[0] - value) > 1e-5
    other = batch["characters"].copy()
    other[0, 5], other[2] = 7, 7  # behind the end of a row
    assert total(other)[0] == pytest.approx(value, rel=1e-6)


def test_columns_of_an_encoder():
    """With some columns of an encoder it computes the same as with an encoder that has only these."""
    for columns in ((0, 3), (3, 6)):
        config = dataclasses.replace(CONFIG, places="between", encoder_columns=columns, layers="top")
        params, batch = params_of(config), batch_of(config)
        assert params["layer_1"]["forward"]["input_kernel"].shape[0] == 13
        assert params["mix"]["between"]["weights"].shape == (1,)
        narrow = dataclasses.replace(config, encoder_columns=(), encoder_width=3, encoder_layers=1)
        narrow_batch = {**batch, "layers": batch["layers"][:, -1:, :, slice(*columns)]}
        scores, expected = (np.asarray(score(c, params, b)) for c, b in ((config, batch), (narrow, narrow_batch)))
        np.testing.assert_array_equal(scores, expected)
        wild = batch["layers"].copy()
        wild[..., slice(*columns)] = 0.0
        assert not np.array_equal(score(config, params, {**batch, "layers": wild}), scores)


def test_company_padding_and_what_stands_there_change_nothing():
    params, batch = params_of(CONFIG), batch_of(CONFIG)
    compute = lambda batch: np.asarray(score(CONFIG, params, batch))  # noqa: E731
    scores = compute(batch)
    wild = jax.tree.map(np.copy, batch)
    wild["words"][1, 1:], wild["words"][2] = 0, 0
    wild["layers"][1, :, 1:], wild["layers"][2] = np.nan, np.nan
    np.testing.assert_allclose(compute(wild)[1, :1], scores[1, :1], atol=1e-6)
    turned = compute({name: array[::-1] for name, array in batch.items()})
    np.testing.assert_allclose(turned[2, :5], scores[0, :5], atol=1e-5)
    longer = {name: np.pad(batch[name], [(0, 0), (0, 4)]) for name in ("words", "tags")}
    longer |= {"lengths": batch["lengths"], "layers": np.pad(batch["layers"], [(0, 0), (0, 0), (0, 4), (0, 0)])}
    np.testing.assert_allclose(compute(longer)[0, :5], scores[0, :5], atol=1e-5)


def test_the_loss_is_that_of_its_parts():
    config = dataclasses.replace(CONFIG, mix_l2=0.5)
    params, batch = params_of(config), batch_of(config)
    params["mix"]["input"]["weights"] = np.array([1.0, 2.0, -1.0], np.float32)
    params = jax.tree.map(jnp.asarray, params)
    terms, _ = loss_and_gradients(config, params, batch)

    @jax.jit
    def likelihood():
        scores, transitions, _ = run_network(config, params, batch)
        return crf.log_likelihood(scores, transitions, batch["lengths"], batch["tags"]).sum()

    assert float(terms["crf"][0]) == pytest.approx(-float(likelihood()), rel=1e-5)
    assert float(terms["crf"][1]) == 2  # a row without words counts nothing
    assert float(terms["mix_l2"][0]) == pytest.approx(0.5 * 6.0)
    assert set(terms) == set(network_coefficients(config))


@pytest.mark.parametrize("output", ["crf", "softmax"])
def test_best_tags_are_legal_and_probable(output):
    config = dataclasses.replace(CONFIG, output=output)
    params = jax.tree.map(lambda x: jnp.asarray(x) * 3, params_of(config))
    decode = jax.jit(lambda batch: best_tags(config, LEGAL, params, batch))
    for seed in range(5):
        batch = batch_of(config, seed=seed)
        tags, shares = map(np.asarray, decode(batch))
        for row, share, n in zip(tags, shares, batch["lengths"]):
            steps = [3, *row[:n], 3] if n else []
            assert all(LEGAL[a, b] for a, b in itertools.pairwise(steps))
            assert ((share[:n] > 0) & (share[:n] <= 1 + 1e-5)).all()
            if n == 1:  # what may begin a sentence: no I-LOC
                assert row[0] != 1


def test_softmax_has_no_transitions():
    config = dataclasses.replace(CONFIG, output="softmax")
    assert "transitions" not in params_of(config)
    assert network_coefficients(config) == {"cross_entropy": 1.0, "mix_l2": 1.0}
    terms = jax.jit(lambda: tagger_loss(config)(params_of(config), batch_of(config), None, None)[0])()
    assert float(terms["cross_entropy"][1]) == 6  # words


def test_an_encoder_that_is_trained_along():
    """Its parameters get gradients, and its layers are made from the batch."""
    config = dataclasses.replace(CONFIG, tuned=True)
    params = params_of(config) | {"encoder": {"scale": np.float32(1)}}
    batch = batch_of(config)
    layers = batch.pop("layers")

    def encode(params, batch, key):
        return params["scale"] * jnp.moveaxis(jnp.asarray(layers), 1, 0)

    loss = tagger_loss(config, encode)
    both = jax.jit(jax.value_and_grad(lambda params: loss(params, batch, None, None)[0]["crf"][0]))
    value, gradient = both(params)
    assert float(gradient["encoder"]["scale"]) != 0
    tagger_params = {name: part for name, part in params.items() if name != "encoder"}
    frozen, _ = loss_and_gradients(CONFIG, tagger_params, batch | {"layers": layers})
    assert float(frozen["crf"][0]) == pytest.approx(float(value), rel=1e-6)


def test_dropout_is_one_mask_for_a_sentence():
    """A BiLSTM without memory gives equal words equal outputs; with one mask for all, equal scores, too."""
    config = dataclasses.replace(CONFIG, encoder_layers=0, encoder_width=0, dropout=0.5, lstm_layers=1)
    params = params_of(config)
    for part in params["layer_0"].values():
        part["state_kernel"] = np.zeros_like(part["state_kernel"])
        part["bias"][10:15] = -1e3  # the forget gate
    batch = {"words": np.ones((2, 6), np.int32), "lengths": np.array([6, 6])}
    first, again, other = (np.asarray(score(config, params, batch, jax.random.key(key))) for key in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not (first == other).all()
    np.testing.assert_allclose(first, np.repeat(first[:, :1], 6, axis=1), atol=1e-6)
    assert not np.allclose(first[0], first[1])  # each row has its own


def test_words_that_bring_their_vectors():
    words = WordInput(2, 3, 4)
    ids, brought = np.array([[-1, 0, 1, 2, 4]]), np.full((1, 5, 4), 9, np.float32)
    x, variables = jax.device_get(jax.jit(words.init_with_output)(jax.random.key(0), ids, None, brought))
    table = variables["params"]
    assert x[0, 0].tolist() == [9.0] * 4
    # The compiler draws the fresh table twice, for each of the two results.
    np.testing.assert_allclose(x[0, 1:], [*table["specials"], table["table"][0], table["table"][2]], rtol=1e-6)
    outside = np.asarray(jax.jit(words.apply)(variables, np.array([[5, -1, 0]])))
    assert np.isnan(outside[0, :2]).all() and np.isfinite(outside[0, 2]).all()
    no_words = WordInput(1, 0, 4)  # no word at all is known
    x, variables = jax.device_get(jax.jit(no_words.init_with_output)(jax.random.key(0), np.array([[0, 1]])))
    assert np.isfinite(x[0, 0]).all() and np.isnan(x[0, 1]).all()
    assert sorted(variables["params"]) == ["specials"]  # nothing that a checkpoint could not hold


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"places": "top"}, "places='top': use input, between, output"),
        ({"places": "input,input"}, "or several of them with commas"),
        ({"places": ""}, "places=''"),
        ({"places": "between", "lstm_layers": 1}, "`between` needs two layers"),
        ({"encoder_width": 0}, "set both or neither"),
        ({"dropout": 1.0}, "dropout=1.0: a rate must be at least 0 and below 1"),
        ({"mix_l2": -1.0}, "mix_l2=-1.0"),
        ({"lstm_size": 0}, "lstm_size is 0; it must be at least 1"),
        ({"num_words": -1}, "num_words is -1"),
        ({"character_layers": 2}, "character_layers=2: the cnn has one layer; use gru or lstm"),
        ({"character_size": 0}, "character_size is 0; it must be at least 1"),
        (
            {"cell": "window", "window": 4},
            "window=4: expected an odd number of words, with the tagged one in the middle",
        ),
        ({"cell": "linear"}, "cell=linear reads neither an encoder's layers nor characters: leave out encoder"),
        ({"feature_size": 0}, "feature_size is 0; it must be at least 1"),
        ({"encoder_columns": (0, 7)}, r"encoder_columns=\(0, 7\): expected a first and an end of the 6 columns"),
        ({"encoder_columns": (3, 3)}, "expected a first and an end"),
        ({"encoder_columns": (3,)}, "expected a first and an end"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


def test_layers_of_another_encoder():
    params, batch = params_of(CONFIG), batch_of(CONFIG)
    with pytest.raises(ValueError, match="layers of 3 x 5 numbers were given to a tagger made for 3 x 6"):
        run_network(CONFIG, params, batch | {"layers": batch["layers"][..., :5]})
    with pytest.raises(ValueError, match="word vectors of shape"):
        init_network(CONFIG, jax.random.key(0), np.zeros((1, 4), np.float32), np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match="characters were given to a network that does not read them"):
        Tagger(CONFIG).apply(
            {"params": params}, batch["words"], batch["lengths"], characters=np.ones((3, 6, 8), np.int32),
            layers=np.moveaxis(batch["layers"], 1, 0),
        )  # fmt: skip
