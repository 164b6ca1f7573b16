"""A network mixes all layers of an encoder or only the named ones, independent of the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.networks import Tagger, TaggerConfig, init_tagger

SIZES = {"num_tags": 3, "num_words": 5, "word_size": 4, "lstm_layers": 1, "lstm_size": 4, "mix_dropout": 0.0}


def tagger(layers):
    config = TaggerConfig(**SIZES, encoder_layers=3, encoder_width=6, layers=layers)
    return config, init_tagger(config, jax.random.key(0), np.zeros((1, 4)), np.ones((5, 4)))


def scores(config, params, layers):
    words, lengths = jnp.ones((2, 4), jnp.int32), jnp.array([4, 3])
    return Tagger(config).apply({"params": params}, words, lengths, layers=layers, deterministic=True)


@pytest.mark.parametrize(
    ("layers", "numbers"), [("", (0, 1, 2)), ("-1", (2,)), ("top", (2,)), ("2,0", (2, 0)), ("1, -1", (1, 2))]
)
def test_only_these_are_read(layers, numbers):
    config, params = tagger(layers)
    assert config.mixed_layers == numbers
    assert params["mix"]["input"]["weights"].shape == (len(numbers),)
    given = jax.random.normal(jax.random.key(1), (3, 2, 4, 6))
    before = scores(config, params, given)
    for n in range(3):
        after = scores(config, params, given.at[n].add(1.0))
        same = all(map(np.array_equal, jax.tree.leaves(before), jax.tree.leaves(after)))
        assert same == (n not in numbers)


@pytest.mark.parametrize("layers", ["3", "-4", "last", "0,0", "2,-1", "top,2", ","])
def test_layers_that_are_not_there(layers):
    with pytest.raises(ValueError, match=r"use different numbers with commas, of the 3 layers of this encoder: 0 to 2"):
        tagger(layers)


def test_without_an_encoder_nothing_is_asked():
    assert TaggerConfig(**SIZES, layers="-1").mixed_layers == ()
