"""Examples of `bert_elmo_jax.sweeps.runners`."""

import re

import pytest

from bert_elmo_jax.sweeps.runners import check_address, count_slots, read_resources


def test_example_of_check_address():
    with pytest.raises(
        ConnectionError,
        match=re.escape("--address=127.0.0.1:1: no Ray cluster answers there; ray start --head prints the address"),
    ):
        check_address("127.0.0.1:1")


def test_example_of_count_slots():
    assert count_slots({"CPU": 32.0, "GPU": 8.0}, {"CPU": 1.0, "GPU": 2.0}) == 4


def test_example_of_read_resources():
    assert read_resources(["GPU=1", "CPU=4"]) == {"GPU": 1.0, "CPU": 4.0}
