"""Examples of `bert_elmo_jax.evals.probing`."""

import numpy as np

from bert_elmo_jax.evals.probing import first_senses, group_means, nearest_senses


def test_example_of_group_means():
    assert group_means(np.array([[1.0], [3.0], [5.0]]), np.array([1, 1, 0]), 3).tolist() == [[5.0], [2.0], [0.0]]


def test_example_of_first_senses():
    assert first_senses(["배", "배", "배"], ["배%1", "배%2", "배%2"], ["배", "눈"]) == ["배%2", None]


def test_example_of_nearest_senses():
    train = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    assert nearest_senses(
        train, ["배"] * 3, ["ship", "pear", "pear"], np.array([[0.2, 0.9], [1.0, 1.0]]), ["배", "눈"]
    ) == ["pear", None]
