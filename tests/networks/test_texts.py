"""Examples of `bert_elmo_jax.networks.texts`."""

from bert_elmo_jax.networks.texts import flatten_pairs, label_coefficients, other_of_pair


def test_example_of_flatten_pairs():
    import numpy as np

    batch = {"words": np.array([[[1, 2], [3, 0]]]), "lengths": np.array([[2, 1]]), "labels": np.array([0])}
    assert {name: array.tolist() for name, array in flatten_pairs(batch).items()} == {
        "words": [[1, 2], [3, 0]],
        "lengths": [2, 1],
        "labels": [0],
    }


def test_example_of_other_of_pair():
    import jax.numpy as jnp

    assert other_of_pair(jnp.arange(4)).tolist() == [1, 0, 3, 2]


def test_example_of_label_coefficients():
    from bert_elmo_jax.networks import BcnConfig

    assert label_coefficients(BcnConfig(num_labels=2, num_words=9, encoder_layers=3, encoder_width=8)) == {
        "cross_entropy": 1.0,
        "mix_l2": 1.0,
    }
