"""Examples of `bert_elmo_jax.text.wordpiece_vocabulary`."""

import re
from pathlib import Path

import pytest

from bert_elmo_jax.text.wordpiece_vocabulary import check_added, check_vocabulary, find_vocabulary


def test_example_of_find_vocabulary():
    assert find_vocabulary(Path("no/such/folder")) is None


def test_example_of_check_vocabulary():
    with pytest.raises(
        ValueError,
        match=re.escape("vocab.txt cannot be used as a vocabulary (5 pieces): it lacks [CLS], [SEP], [MASK]"),
    ):
        check_vocabulary(["[PAD]", "[UNK]", "a", "b", "a"], "vocab.txt")


def test_example_of_check_added():
    check_added(Path("no/such/folder"), ["[PAD]"])
