"""Examples of `bert_elmo_jax.families.elmo.files`."""

from pathlib import Path

from bert_elmo_jax.families.elmo.files import (
    elmo_files,
    find_options,
    find_weights,
    named_options,
    named_weights,
    read_options,
)


def test_example_of_elmo_files():
    assert elmo_files("tests/goldens/elmo_tiny") == ["options.json", "weights.hdf5"]


def test_example_of_named_weights():
    assert [file.name for file in named_weights(Path("tests/goldens/elmo_tiny"))] == ["weights.hdf5"]


def test_example_of_named_options():
    assert [file.name for file in named_options(Path("tests/goldens/elmo_tiny"))] == ["options.json"]


def test_example_of_find_weights():
    assert find_weights("tests/goldens/elmo_tiny")[0].name == "weights.hdf5"


def test_example_of_find_options():
    assert find_options(Path("tests/goldens/elmo_tiny/weights.hdf5")).name == "options.json"


def test_example_of_read_options():
    assert read_options(Path("tests/goldens/elmo_tiny/options.json"))["lstm"]["dim"] == 48
