"""Examples of `bert_elmo_jax.inference.word_layers`."""

import numpy as np

from bert_elmo_jax.inference.word_layers import StaticVectors, choose_layers


def test_example_of_choose_layers():
    vectors = StaticVectors({"bank": np.ones(2, np.float32)})
    assert (choose_layers(vectors), choose_layers(vectors, [1, 2])) == ((0,), (0,))
