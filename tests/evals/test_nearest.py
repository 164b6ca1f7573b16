"""Examples of `bert_elmo_jax.evals.nearest`."""

import numpy as np

from bert_elmo_jax.evals.nearest import Separation, principal_plane


def test_example_of_separation():
    assert Separation(1.0, 0.5, np.zeros((4, 2))).plane.shape == (4, 2)


def test_example_of_principal_plane():
    assert principal_plane(np.array([[1.0], [3.0]])).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
