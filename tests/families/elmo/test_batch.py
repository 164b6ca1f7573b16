import functools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.encoders.rows import BadText
from bert_elmo_jax.families.elmo.batch import (
    PIECES,
    batches,
    check_words,
    max_rows,
    number_words,
    pad,
    pieces,
    to_words,
    used_characters,
    width_for,
)
from bert_elmo_jax.text.characters import PAD_CHARACTER, boundary_characters, character_table

WORDS = ["<S>", "New York", "a\x00b", "\x00", " ", "강가의", "x" * 10_000, "🌊"]


def test_words_are_taken_as_they_are():
    assert to_words(WORDS, 0) == WORDS
    assert to_words("  강가의\t은행\u3000앞 \n", 0) == ["강가의", "은행", "앞"]
    assert to_words("\x00", 0) == ["\x00"]


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
def test_what_is_no_sentence(text, error, message):
    with pytest.raises(error, match=message):
        to_words(text, 7)


def test_words_that_are_no_sentence():
    with pytest.raises(ValueError, match="the list holds a lone surrogate"):
        check_words(["\udfff"], lambda what: ValueError(f"the list {what}"))
    check_words(WORDS, functools.partial(BadText, 0))


@given(st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1), min_size=1))
def test_numbers_lead_back_to_the_words(sentences):
    distinct, rows = number_words(sentences)
    assert sorted(distinct) == sorted({word for words in sentences for word in words})
    for words, row in zip(sentences, rows, strict=True):
        assert [row[0], row[-1]] == [0, 1]
        assert [distinct[n - 2] for n in row[1:-1]] == words


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=80), st.integers(1, 40))
def test_batches_hold_every_row_once(lengths, batch_size):
    found = list(batches(lengths, batch_size))
    assert sorted(n for batch in found for n in batch) == list(range(len(lengths)))
    longest = [max(lengths[n] for n in batch) for batch in found]
    assert longest == sorted(longest, reverse=True)
    for batch in found:
        assert len(batch) <= batch_size
        words, found_lengths = pad([np.arange(lengths[n]) for n in batch], batch_size)
        assert found_lengths[: len(batch)].tolist() == [lengths[n] for n in batch]
        assert not found_lengths[len(batch) :].any()
        # Memory does not grow with the length of rows, but where a single one is longer than all of a usual batch.
        assert words.size <= max(batch_size * 512, width_for(max(longest)))


@given(st.integers(1, 10**6))
def test_widths_are_few_and_close(length):
    width = width_for(length)
    assert length <= width <= max(8, 1.5 * length)
    assert (width & (width - 1)) == 0 or (width // 3 & (width // 3 - 1)) == 0
    assert max_rows(length, 1) == 1


def test_shapes_of_batches_are_few():
    shapes = {
        pad([np.arange(length)] * rows, 32)[0].shape
        for length in range(1, 600)
        for rows in (32, 17, 1)
        if rows <= max_rows(length, 32)
    }
    assert len(shapes) <= 2 * 14 + 2


@given(
    st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=400), st.integers(3, 60), st.sampled_from([1, 7])
)
def test_pieces_hold_every_word_once_and_whole(words, max_characters, times):
    words = [word for word in words if word.isprintable()] * times + ["a"]
    table = character_table(words, max_characters)
    seen = []
    for which, piece in pieces(table):
        assert len(piece) in PIECES
        assert piece.shape[1] in {16, 24, 32, max_characters}
        assert piece.shape[1] <= max_characters
        width = piece.shape[1]
        assert np.array_equal(piece[: len(which)], table[which, :width])
        assert (table[which, width:] == PAD_CHARACTER).all()
        seen += which.tolist()
    assert sorted(seen) == list(range(len(words)))


def test_little_is_wasted_on_words():
    for count in range(1, 2000):
        table = np.repeat(boundary_characters(50)[:1], count, axis=0)
        computed = sum(len(piece) for _, piece in pieces(table))
        assert count <= computed <= max(8, count * 1.34 + 8)


def test_characters_behind_a_zero_are_kept():
    """A word may hold 0 and then padding, in ids made by hand; cut behind the 0 it would be another word."""
    table = character_table(["ab"], 50)
    assert used_characters(table).tolist() == [4]
    table[0, 4] = 0
    assert used_characters(table).tolist() == [50]


def test_example_of_to_words():
    assert (to_words("강가의  은행\n", 0), to_words(["New York"], 1)) == (["강가의", "은행"], ["New York"])


def test_example_of_number_words():
    assert (
        repr(number_words([["a", "b", "a"], ["b"]]))
        == "(['a', 'b'], [array([0, 2, 3, 2, 1], dtype=int32), array([0, 3, 1], dtype=int32)])"
    )


def test_example_of_max_rows():
    assert [max_rows(length, 32) for length in (20, 512, 700, 100_000)] == [32, 32, 21, 1]


def test_example_of_used_characters():
    assert used_characters(np.array([[259, 98, 260, 261, 261], [259, 98, 0, 261, 261]])).tolist() == [3, 5]


def test_example_of_check_words():
    with pytest.raises(BadText, match=re.escape("text 3 holds an empty word, word 1 of 2: remove it")):
        check_words(["배", ""], functools.partial(BadText, 3))


def test_example_of_batches():
    assert list(batches([3, 9, 4, 900], 2)) == [[3], [1, 2], [0]]


def test_example_of_pad():
    assert pad([np.array([0, 2, 1]), np.array([0, 1])], 32)[1].tolist() == [3, 2]


def test_example_of_width_for():
    assert [width_for(length) for length in (3, 9, 13, 17, 25, 300, 513)] == [8, 12, 16, 24, 32, 384, 768]
