"""Examples of `bert_elmo_jax.weights.sorted_table`."""

from pathlib import Path

from bert_elmo_jax.weights.sorted_table import is_table


def test_example_of_is_table():
    assert not is_table(Path("absent.index"))
