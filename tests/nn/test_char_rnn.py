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
    table = character_table(WORDS, 12)
    vectors, variables = jax.jit(rnn.init_with_output)(jax.random.key(0), table)
    params = jax.device_get(variables["params"])
    assert vectors.shape == (4, 8)
    lengths = np.array([len(word.encode()) + 2 for word in WORDS])
    x, read = params["embedding"][table - 1], jax.jit({"gru": bigru, "lstm": bilstm}[cell])
    for n in range(2):
        x = np.asarray(read(x, params[f"layer_{n}"], lengths))
    ends = np.concatenate([x[np.arange(4), lengths - 1, :4], x[:, 0, 4:]], axis=1)
    np.testing.assert_allclose(vectors, ends, atol=1e-6)


def test_the_width_changes_nothing_and_no_word_is_zero():
    rnn = CharRNN(embedding_size=3, size=4, cell="gru")
    narrow, wide = (character_table(WORDS, width) for width in (9, 50))
    params = jax.jit(rnn.init)(jax.random.key(0), narrow)
    apply = jax.jit(rnn.apply)
    vectors = np.asarray(apply(params, narrow))
    np.testing.assert_allclose(apply(params, wide), vectors, atol=1e-6)
    sentences = np.zeros((2, 3, 9), np.int32)
    sentences[1, :2] = narrow[:2]

    def total(params):
        outputs = rnn.apply(params, sentences)
        return jnp.square(outputs).sum(), outputs

    gradient, outputs = jax.device_get(jax.jit(jax.grad(total, has_aux=True))(params))
    assert outputs.shape == (2, 3, 8)
    np.testing.assert_allclose(outputs[1, :2], vectors[:2], atol=1e-6)
    assert not outputs[0].any() and not outputs[1, 2].any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert gradient["params"]["embedding"][259 - 1].any() and not gradient["params"]["embedding"][261 - 1].any()
