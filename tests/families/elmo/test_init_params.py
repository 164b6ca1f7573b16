"""Examples of `bert_elmo_jax.families.elmo.model`."""

import jax

from bert_elmo_jax.families.elmo.model import ElmoConfig, elmo_shapes, init_elmo_params


def test_example_of_init_elmo_params():
    params = init_elmo_params(ElmoConfig.preset("toy", vocab_size=100), jax.random.key(0), lm=True)
    assert jax.tree.map(jax.numpy.shape, params["lm"]) == {"bias": (100,), "embedding": (100, 32)}


def test_example_of_elmo_shapes():
    shapes = elmo_shapes(ElmoConfig.preset("original", vocab_size=793471), lm=True)
    assert (
        shapes["encoder/forward/layer_1/state_kernel"],
        shapes["encoder/token/conv_6/kernel"],
        shapes["lm/bias"],
    ) == ((512, 16384), (7, 16, 1024), (793471,))
