"""Examples of `bert_elmo_jax.weights.stored`."""

import numpy as np

from bert_elmo_jax.weights.stored import StoredTensor


def test_example_of_storedtensor():
    assert StoredTensor((2, 3), "float32", lambda: np.zeros((2, 3), np.float32)).read().shape == (2, 3)
