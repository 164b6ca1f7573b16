"""Examples of `bert_elmo_jax.families.elmo.encoded`."""

import numpy as np

from bert_elmo_jax.families.elmo.encoded import mix_layers


def test_example_of_mix_layers():
    assert mix_layers(np.ones((3, 1, 2, 4), np.float32), [0, 1, 1], 0.5, expected=3)[0, 0].tolist() == [
        1.0,
        1.0,
        1.0,
        1.0,
    ]
