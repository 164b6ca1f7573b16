"""Examples of `bert_elmo_jax.encoders.encoded`."""

import numpy as np

from bert_elmo_jax.encoders.encoded import show_shapes, to_slice


def test_example_of_show_shapes():
    assert show_shapes("Encoded", 2, last=np.zeros((2, 5, 8)), layers=None) == "Encoded(2 texts, last [2, 5, 8])"


def test_example_of_to_slice():
    assert repr(to_slice(-1, 3)) == "slice(2, 3, None)"
