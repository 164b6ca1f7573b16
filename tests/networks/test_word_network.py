"""Examples of `bert_elmo_jax.networks.word_network`."""

import re

import pytest


def test_example_of_init_network():
    import jax
    import numpy as np

    from bert_elmo_jax.networks import TaggerConfig
    from bert_elmo_jax.networks.word_network import init_network

    config = TaggerConfig(num_tags=3, num_words=9)
    with pytest.raises(
        ValueError,
        match=re.escape("word vectors of shape (1, 100) and (2, 100) were given, expected (1, 100) and (9, 100)"),
    ):
        init_network(config, jax.random.key(0), np.zeros((1, 100)), np.zeros((2, 100)))


def test_example_of_network_shapes():
    from bert_elmo_jax.networks import TaggerConfig
    from bert_elmo_jax.networks.word_network import network_shapes

    config = TaggerConfig(num_tags=3, num_words=9)
    assert network_shapes(config)["words"]["table"].shape == (9, 100)
