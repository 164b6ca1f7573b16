"""Examples of `bert_elmo_jax.text.wordpiece_files`."""

import re
from pathlib import Path

import pytest

from bert_elmo_jax.text.tokenizer import find_vocabulary
from bert_elmo_jax.text.wordpiece_files import check_added, check_vocabulary, read_vocabulary


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


def test_only_line_feeds_end_a_piece(tmp_path):
    # Released vocabularies hold pieces such as U+2028, where `str.splitlines` would split.
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\r\n\u2028\r\n배\r\n\r\n".encode())
    assert read_vocabulary(path) == ["[PAD]", "\u2028", "배"]
