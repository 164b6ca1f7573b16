"""Examples of `bert_elmo_jax.nn.lstm`."""

import jax.numpy as jnp

from bert_elmo_jax.nn.lstm import turn


def test_example_of_turn():
    assert turn(jnp.array([[[1.0], [2.0], [9.0]]]), jnp.array([2]))[0, :, 0].tolist() == [2.0, 1.0, 9.0]
