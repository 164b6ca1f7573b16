"""Examples of `bert_elmo_jax.networks.bcn`."""

from bert_elmo_jax.networks.bcn import bcn_shapes


def test_example_of_attentive_pool():
    import jax.numpy as jnp

    from bert_elmo_jax.networks.bcn import attentive_pool

    assert attentive_pool(
        jnp.array([[[1.0], [3.0], [9.0]]]), jnp.zeros(1), jnp.array([[True, True, False]])
    ).tolist() == [[2.0]]


def test_example_of_bcn_shapes():
    from bert_elmo_jax.networks import BcnConfig

    assert bcn_shapes(BcnConfig(num_labels=3, num_words=9, pairs=True))["maxout_0"]["kernel"].shape == (4800, 4800)
