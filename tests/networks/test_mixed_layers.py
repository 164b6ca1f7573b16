"""A network mixes all layers of an encoder or only the named ones, independent of the others."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.networks import Tagger, TaggerConfig, network_shapes

SIZES = {"num_tags": 3, "num_words": 5, "word_size": 4, "lstm_layers": 1, "lstm_size": 4, "mix_dropout": 0.0}


def tagger(layers):
    config = TaggerConfig(**SIZES, encoder_layers=3, encoder_width=6, layers=layers)
    draw = np.random.default_rng(0)
    return config, jax.tree.map(lambda leaf: draw.normal(size=leaf.shape).astype(np.float32), network_shapes(config))


def scores(config, params):
    words, lengths = np.ones((2, 4), np.int32), np.array([4, 3])
    apply = jax.jit(Tagger(config).apply)
    return lambda layers: jax.device_get(apply({"params": params}, words, lengths, layers=layers))


@pytest.mark.parametrize(
    ("layers", "numbers"), [("", (0, 1, 2)), ("-1", (2,)), ("top", (2,)), ("2,0", (2, 0)), ("1, -1", (1, 2))]
)
def test_names_of_layers(layers, numbers):
    config, params = tagger(layers)
    assert config.mixed_layers == numbers
    assert params["mix"]["input"]["weights"].shape == (len(numbers),)


@pytest.mark.parametrize(("layers", "numbers"), [("-1", (2,)), ("2,0", (2, 0))])
def test_only_these_are_read(layers, numbers):
    inputs, compute = np.random.default_rng(1).normal(size=(3, 2, 4, 6)).astype(np.float32), scores(*tagger(layers))
    before = compute(inputs)
    for n in range(3):
        changed = inputs.copy()
        changed[n] += 1
        same = all(map(np.array_equal, jax.tree.leaves(before), jax.tree.leaves(compute(changed))))
        assert same == (n not in numbers)


@pytest.mark.parametrize("layers", ["3", "-4", "last", "0,0", "2,-1", "top,2", ","])
def test_layers_that_are_not_there(layers):
    with pytest.raises(ValueError, match=r"use different numbers with commas, of the 3 layers of this encoder: 0 to 2"):
        tagger(layers)


def test_without_an_encoder_nothing_is_asked():
    assert TaggerConfig(**SIZES, layers="-1").mixed_layers == ()
