"""Examples of `bert_elmo_jax.sweeps.schedule`."""

from pathlib import Path

from bert_elmo_jax.sweeps.schedule import read_last_percent


def test_example_of_read_last_percent():
    assert read_last_percent(Path("no/such/log.txt")) == 0
