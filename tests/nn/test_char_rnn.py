"""The network over the characters of a word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.nn import CharRNN, bigru, bilstm
from bert_elmo_jax.text import character_table

WORDS = ["배", "a", "bank", "banks"]


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_last_states_of_both_directions(cell):
    rnn = CharRNN(embedding_size=3, size=4, cell=cell, num_layers=2)
    table = jnp.asarray(character_table(WORDS, 12))
    vectors, variables = rnn.init_with_output(jax.random.key(0), table)
    params = variables["params"]
    assert vectors.shape == (4, 8)
    for row, word in enumerate(WORDS):
        size = len(word.encode()) + 2
        x = params["embedding"][table[row : row + 1, :size] - 1]
        for n in range(2):
            x = {"gru": bigru, "lstm": bilstm}[cell](x, params[f"layer_{n}"], jnp.array([size]))
        np.testing.assert_allclose(vectors[row], jnp.concatenate([x[0, -1, :4], x[0, 0, 4:]]), atol=1e-6)


def test_the_width_changes_nothing_and_no_word_is_zero():
    rnn = CharRNN(embedding_size=3, size=4, cell="gru")
    narrow, wide = (jnp.asarray(character_table(WORDS, width)) for width in (9, 50))
    params = rnn.init(jax.random.key(0), narrow)
    vectors = rnn.apply(params, narrow)
    np.testing.assert_allclose(rnn.apply(params, wide), vectors, atol=1e-6)
    sentences = jnp.zeros((2, 3, 9), jnp.int32).at[1, :2].set(narrow[:2])
    found = rnn.apply(params, sentences)
    assert found.shape == (2, 3, 8)
    np.testing.assert_allclose(found[1, :2], vectors[:2], atol=1e-6)
    assert not found[0].any() and not found[1, 2].any()
    gradient = jax.grad(lambda params: jnp.square(rnn.apply(params, sentences)).sum())(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert gradient["params"]["embedding"][259 - 1].any() and not gradient["params"]["embedding"][261 - 1].any()
