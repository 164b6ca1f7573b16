"""Examples of `bert_elmo_jax.evals.attention_heads`."""

import numpy as np

from bert_elmo_jax.evals.attention_heads import at_offsets, follows, most_attended, word_maps


def test_example_of_word_maps():
    maps = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.0, 0.5, 0.5]])
    assert word_maps(maps, np.array([0, 1, 1]), 2).round(2).tolist() == [[0.5, 0.5], [0.1, 0.9]]


def test_example_of_most_attended():
    assert most_attended(np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.4, 0.1, 0.5]])).tolist() == [1, 2, 0]


def test_example_of_follows():
    assert follows(np.array([1, 2, 0]), [(0, 1), (2, 1)]).tolist() == [[True, False], [False, True]]


def test_example_of_at_offsets():
    assert at_offsets([(0, 1)])[:, 0].astype(int).tolist() == [
        [0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    ]
