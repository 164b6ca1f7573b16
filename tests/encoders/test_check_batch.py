"""Examples of `bert_elmo_jax.encoders.arguments`."""

import re

import numpy as np
import pytest

from bert_elmo_jax.encoders.arguments import check_batch


def test_example_of_check_batch():
    from bert_elmo_jax.families.bert.config import BertConfig

    with pytest.raises(
        ValueError,
        match=re.escape(
            "token id 100 at row 0, column 1 is outside the vocabulary, whose ids are 0 to 99 (vocab_size 100)"
        ),
    ):
        check_batch(BertConfig.preset("tiny", vocab_size=100), np.array([[2, 100, 3]]))
