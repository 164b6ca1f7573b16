"""Examples of `bert_elmo_jax.networks.text_classifiers`."""

from bert_elmo_jax.networks.text_classifiers import (
    bcn_shapes,
    esim_shapes,
    flatten_pairs,
    label_coefficients,
    other_of_pair,
)


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


def test_example_of_attentive_pool():
    import jax.numpy as jnp

    from bert_elmo_jax.networks.text_classifiers import attentive_pool

    assert attentive_pool(
        jnp.array([[[1.0], [3.0], [9.0]]]), jnp.zeros(1), jnp.array([[True, True, False]])
    ).tolist() == [[2.0]]


def test_example_of_bcn_shapes():
    from bert_elmo_jax.networks import BcnConfig

    assert bcn_shapes(BcnConfig(num_labels=3, num_words=9, pairs=True))["maxout_0"]["kernel"].shape == (4800, 4800)


def test_example_of_esim_shapes():
    from bert_elmo_jax.networks import EsimConfig

    assert esim_shapes(EsimConfig(num_labels=3, num_words=9))["labels"]["kernel"].shape == (300, 3)
