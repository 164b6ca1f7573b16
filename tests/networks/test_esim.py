"""Examples of `bert_elmo_jax.networks.esim`."""

from bert_elmo_jax.networks.esim import esim_shapes


def test_example_of_esim_shapes():
    from bert_elmo_jax.networks import EsimConfig

    assert esim_shapes(EsimConfig(num_labels=3, num_words=9))["labels"]["kernel"].shape == (300, 3)
