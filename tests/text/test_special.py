"""Examples of `bert_elmo_jax.text.tokenizer`."""

import re

import pytest

from bert_elmo_jax.text.tokenizer import check_ids, reject_text


def test_example_of_reject_text():
    with pytest.raises(
        ValueError, match=re.escape("text 1 holds a lone surrogate, U+D83D at character 5: half of a character")
    ):
        reject_text(["fine", "half \ud83d"], UnicodeError("unhelpful"))


def test_example_of_check_ids():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "id 9 at position 1 is not in this vocabulary of 5 pieces; use the tokenizer that made the ids"
        ),
    ):
        check_ids([3, 9], vocab_size=5)
