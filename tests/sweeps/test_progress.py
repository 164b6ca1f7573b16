"""Examples of `bert_elmo_jax.sweeps.progress`."""

from pathlib import Path

from bert_elmo_jax.sweeps.progress import read_last_percent


def test_example_of_read_last_percent():
    assert read_last_percent(Path("no/such/log.txt")) == 0
