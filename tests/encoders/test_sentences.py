"""Sentences of words: their checks, and the shapes of batches."""

import functools
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.encoders.rows import BadText
from bert_elmo_jax.encoders.sentences import check_words, max_rows, to_words, width_for

WORDS = ["<S>", "New York", "a\x00b", "\x00", " ", "강가의", "x" * 10_000, "🌊"]


def test_words_are_taken_as_they_are():
    assert to_words(WORDS, 0) == WORDS
    assert to_words("  강가의\t은행\u3000앞 \n", 0) == ["강가의", "은행", "앞"]
    assert to_words("\x00", 0) == ["\x00"]
    decomposed = unicodedata.normalize("NFD", "강가")
    assert to_words(decomposed, 0) == to_words([decomposed], 0, composed=True) == [decomposed]
    assert to_words(decomposed, 0, composed=True) == ["강가"]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ValueError, "text 7 has no words: ''"),
        (" \n\u3000", ValueError, "text 7 has no words"),
        ([], ValueError, r"text 7 has no words: \[\]"),
        (["a", ""], ValueError, "text 7 holds an empty word, word 1 of 2: remove it"),
        (["a", "b\ud83d"], ValueError, r"text 7 holds a lone surrogate, U\+D83D at character 1 of word 1: half of a"),
        (["\ud83d", "\ude00"], ValueError, r"text 7 holds a lone surrogate, U\+D83D at character 0 of word 0"),
        ("a b\udc80", ValueError, r"text 7 holds a lone surrogate, U\+DC80 at character 1 of word 1: half of a"),
        (None, TypeError, "text 7 is None; expected a list of words, or a string"),
        (3, TypeError, "text 7 is 3; expected"),
        (b"bank", TypeError, "text 7 is b'bank'; expected"),
        (("the", "bank"), TypeError, r"text 7 is \('the', 'bank'\); expected .*; write it as a list of words"),
        ({"the": 1}, TypeError, r"text 7 is \{'the': 1\}; expected"),
        (["a", None], TypeError, "text 7 holds None as word 1; expected a string"),
        (["a", 0], TypeError, "text 7 holds 0 as word 1; expected a string"),
        ([b"a"], TypeError, "text 7 holds b'a' as word 0; expected a string"),
        ([["the", "bank"]], TypeError, r"text 7 holds \['the', 'bank'\] as word 0; expected a string"),
        ([np.zeros(2)], TypeError, r"text 7 holds array\(\[0., 0.\]\) as word 0"),
    ],
)
def test_wrong_sentences_are_refused(text, error, message):
    with pytest.raises(error, match=message):
        to_words(text, 7)


def test_words_that_are_no_sentence():
    with pytest.raises(ValueError, match="the list holds a lone surrogate"):
        check_words(["\udfff"], lambda problem: ValueError(f"the list {problem}"))
    check_words(WORDS, functools.partial(BadText, 0))


@given(st.integers(1, 10**6))
def test_widths_are_few_and_close(length):
    width = width_for(length)
    assert length <= width <= max(8, 1.5 * length)
    assert (width & (width - 1)) == 0 or (width // 3 & (width // 3 - 1)) == 0
    assert max_rows(length, 1) == 1
