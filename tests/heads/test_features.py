"""Examples of `bert_elmo_jax.heads.features`."""

import jax.numpy as jnp

from bert_elmo_jax.heads.features import mean_over_pieces


def test_example_of_mean_over_pieces():
    assert mean_over_pieces(jnp.array([[[1.0], [3.0], [9.0]]]), jnp.array([[1, 1, 0]]), 1).tolist() == [[[2.0]]]
