"""Examples of `bert_elmo_jax.sweeps.points`."""

from pathlib import Path

from bert_elmo_jax.sweeps.points import File, find_config


def test_example_of_find_config():
    assert Path(find_config("bert:toy")).name == "bert.py:toy"


def test_example_of_file():
    assert File("squad/train-v1.1.json").name == "squad/train-v1.1.json"
