"""Examples of `bert_elmo_jax.lazy_imports`."""

from bert_elmo_jax.lazy_imports import lazy_function


def test_example_of_lazy_function():
    assert lazy_function("bert_elmo_jax.did_you_mean", "did_you_mean")("brt", ["bert"]) == "; did you mean bert?"
