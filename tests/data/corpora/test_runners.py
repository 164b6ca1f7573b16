"""Examples of `bert_elmo_jax.data.corpora.runners`."""

from bert_elmo_jax.data.corpora.runners import ray_runner


def test_example_of_ray_runner():
    assert callable(ray_runner)
