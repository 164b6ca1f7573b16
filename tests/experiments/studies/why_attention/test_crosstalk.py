"""Without masks, two layers are enough for a word to see itself through the others."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.toyworld import ToyWorld
from experiments.studies.why_attention.crosstalk import (
    choose_places,
    init_reader,
    most_frequent_share,
    other_words,
    read_words,
    see_oneself,
)
from experiments.studies.why_attention.small_training import toy_texts

WORLD = ToyWorld("en", topics=2, words=2)
read = jax.jit(read_words, static_argnums=2)  # operation by operation, each is compiled on its own


@functools.partial(jax.jit, static_argnums=(0, 1))
def init(length, layers):
    return init_reader(jax.random.key(0), size=9, length=length, layers=layers, width=16)


@pytest.fixture(scope="module")
def texts():
    return toy_texts(WORLD, train=1_000, test=300)


@pytest.mark.long
def test_the_loss_falls_and_hidden_words_stay_at_chance(texts):
    one, two = (see_oneself(texts, n, "every word", width=32, steps=350, rate=0.01) for n in (1, 2))
    chance = most_frequent_share(texts, choose_places(texts.test, 0))
    assert two.loss < 0.3 < 0.7 < one.loss
    assert two.own > 0.9 > one.own
    noise = 3 * np.sqrt(chance * (1 - chance) / 300)
    assert two.hidden < chance + noise
    assert one.hidden > chance + noise
    assert one.hidden == one.swapped  # with one layer, the word in a place does not reach its prediction


@pytest.mark.long
def test_masks_leave_a_deep_model_honest(texts):
    masked = see_oneself(texts, 2, "masked words", width=32, steps=350, rate=0.01)
    chance = most_frequent_share(texts, choose_places(texts.test, 0))
    assert masked.hidden > chance + 3 * np.sqrt(chance * (1 - chance) / 300)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_word_reaches_its_own_prediction_only_through_two_layers(layers):
    params = init(5, layers)
    words = jnp.array([[3, 4, 5, 6]])
    changed = words.at[0, 1].set(8)
    before, after = (np.asarray(read(params, w, layers))[0] for w in (words, changed))
    assert (np.abs(before[1] - after[1]).max() > 1e-3) == (layers == 2)
    assert np.abs(before[0] - after[0]).max() > 1e-3


def test_padding_changes_nothing():
    params = init(6, 2)
    words = jnp.array([[3, 4, 5]])
    padded = jnp.pad(words, ((0, 0), (0, 3)))
    np.testing.assert_allclose(read(params, padded, 2)[:, :3], read(params, words, 2), atol=1e-5)


def test_other_words_differ(texts):
    places = choose_places(texts.test, 1)
    rows = np.arange(len(places))
    assert (texts.test[rows, places + 1] > 0).all()  # never the full stop
    drawn_words = other_words(texts, places, 1)
    assert (drawn_words != texts.test[rows, places]).all() and drawn_words.min() >= 2 and drawn_words.max() < texts.size
