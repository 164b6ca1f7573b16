"""Examples of `bert_elmo_jax.text.sentencepiece`."""

import re
from pathlib import Path

import pytest

from bert_elmo_jax.text.sentencepiece import find_specials
from bert_elmo_jax.text.tokenizer import find_model


def test_example_of_find_model():
    assert find_model(Path("no/such/folder")) is None


def test_example_of_find_specials():
    with pytest.raises(
        ValueError, match=re.escape("x.model has no piece for: pad ([PAD] or <pad>), mask ([MASK] or <mask>).")
    ):
        find_specials(["<unk>", "<s>", "</s>"], None, "x.model")
