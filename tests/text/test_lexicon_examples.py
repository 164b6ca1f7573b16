"""Examples of `bert_elmo_jax.text.lexicon`."""

import numpy as np

from bert_elmo_jax.text.lexicon import places_of
from bert_elmo_jax.text.vectors import WordVectors


def test_example_of_places_of():
    assert places_of(
        ["River", "배", "눈"], WordVectors(("배", "river"), np.ones((2, 2), np.float32), 2, 0)
    ).tolist() == [1, 0, -1]
