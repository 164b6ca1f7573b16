"""Examples of `bert_elmo_jax.data.tasks.rows`."""

from bert_elmo_jax.data.tasks.rows import best_windows


def test_example_of_best_windows():
    assert best_windows([(0, 5), (3, 8)], 8).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
