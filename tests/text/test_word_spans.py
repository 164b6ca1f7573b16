"""Tests of `word_spans` against `split_words`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_elmo_jax.text import split_words, word_spans

PARTS = st.sampled_from(
    ["배를 ", "탔다.", "\r\n", "\t", "café", "cafe\u0301", "😀👍🏽", "漢字", "\u3000", "\xa0", "$3.50", "한", "'s"]
)
TEXT = st.one_of(st.text(max_size=40), st.lists(PARTS, max_size=12).map("".join))


@settings(deadline=None)
@given(text=TEXT, rule=st.sampled_from(["punctuation", "whitespace"]))
def test_spans_match_split_words(text, rule):
    words, spans = word_spans(text, rule)
    assert list(words) == split_words(text, rule)
    assert [text[start:end] for start, end in spans.tolist()] == list(words)
    flat = spans.ravel()
    assert (np.diff(flat) >= 0).all()  # in order, without overlap
    assert (spans[:, 0] < spans[:, 1]).all()


def test_empty_texts_have_no_words():
    words, spans = word_spans(" \r\n\t")
    assert words == ()
    assert spans.shape == (0, 2)
    with pytest.raises(ValueError, match="no rule 'moses'"):
        word_spans("a", "moses")
