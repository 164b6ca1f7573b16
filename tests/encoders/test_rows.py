import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bert_elmo_jax.data.rows.widths import height_for, width_for
from bert_elmo_jax.encoders.rows import BadText, to_row
from bert_elmo_jax.text import WordPiece

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENIZER = WordPiece([*SPECIAL, "a", "b", "배", "##를"])


def row(text, size=512, overflow="raise", stride=None):
    return to_row(text, 0, TOKENIZER, size, overflow, stride)


def test_a_text_that_fits_is_one_window():
    single = row("a b 배를")
    assert single.encoding.tokens == ("[CLS]", "a", "b", "배", "##를", "[SEP]")
    assert single.windows == ((0, 4),)
    assert single.columns(0).tolist() == list(range(6))
    assert single.words == (3, 0)
    pair = row((["a"], ["b", "배를", "\u200b"]))
    assert pair.prefix == 3
    assert pair.columns(0).tolist() == list(range(8))
    assert pair.encoding.tokens[-2] == "[UNK]", "a word that the tokenizer has no piece for"
    assert pair.words == (1, 3)


@given(st.integers(1, 80), st.integers(4, 20), st.integers(1, 18))
def test_owners_are_the_windows_of_most_context(pieces, size, stride):
    """As in the reference, a piece belongs to the first window whose smaller side is largest."""
    assume(stride <= size - 2)
    text_row = row(" ".join(["a"] * pieces), size, "windows", stride)
    place = np.arange(pieces)
    context = [np.minimum(place - start, end - 1 - place) for start, end in text_row.windows]
    assert text_row.owners()[1:-1].tolist() == np.argmax(context, axis=0).tolist()
    assert [text_row.length(w) for w in range(len(text_row.windows))] == [
        len(text_row.columns(w)) for w in range(len(text_row.windows))
    ]


def test_owners_of_a_very_long_text_need_memory_for_the_text_alone():
    long = row(" ".join(["a"] * 30_000), size=4, overflow="windows")  # 30,000 x 30,000 numbers would be 7 GB
    assert len(long.windows) == 29_999
    tracemalloc.start()
    long.owners()
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_max_context_takes_the_window_with_more_on_its_smaller_side():
    windows = row("a b a b a b a b", size=6, overflow="windows", stride=2)
    assert windows.windows == ((0, 4), (2, 6), (4, 8))
    # places 2 and 3 are in both first windows: 2 has contexts (2, 1) and (0, 3), 3 has (3, 0) and (1, 2)
    assert windows.owners()[1:-1].tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert windows.columns(1).tolist() == [0, 3, 4, 5, 6, 9]


@given(st.integers(1, 60), st.integers(4, 20), st.integers(1, 18), st.integers(0, 9))
def test_windows_cover_every_piece_once(pieces, size, stride, question):
    text = " ".join(["a"] * pieces)
    text = (" ".join(["b"] * question), text) if question else text
    prefix = question + 2 if question else 1
    capacity = size - prefix - 1
    if pieces > capacity and (capacity < 2 or stride > capacity):
        with pytest.raises(ValueError, match=r"gaps|leaves no window|room for one"):
            row(text, size, "windows", stride)
        return
    text_row = row(text, size, "windows", stride)
    owners = text_row.owners()
    for window in range(len(text_row.windows)):
        columns = text_row.columns(window)
        assert len(columns) <= size
        assert set(np.flatnonzero(owners == window)) <= set(columns)
    assert len(owners) == len(text_row)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(5, 24))
def test_truncation_takes_from_the_longer_text(first, second, size):
    cut = row((" ".join(["a"] * first), " ".join(["b"] * second)), size, "truncate").encoding
    a, b = cut.tokens.count("a"), cut.tokens.count("b")
    # by the rule: the longer loses a piece at a time, on a tie the second
    while first + second + 3 > size:
        first, second = (first - 1, second) if first > second else (first, second - 1)
    assert (a, b) == (first, second)
    assert cut.tokens == ("[CLS]", *["a"] * a, "[SEP]", *["b"] * b, "[SEP]")
    assert cut.types.tolist() == [0] * (a + 2) + [1] * (b + 1)


def test_too_long_names_both_numbers_and_the_ways_out():
    with pytest.raises(ValueError, match=r"text 0 has 513 pieces, the model takes 512: .*truncate.*windows"):
        row(" ".join(["a"] * 511))
    assert len(row(" ".join(["a"] * 510))) == 512


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text 0 is empty"),
        ("  \n", "text 0 is empty"),
        ([], "text 0 is empty"),
        (("", ""), "text 0 is empty"),
        (None, "text 0 is None; expected a string"),
        (["a", 3], r"text 0 is \['a', 3\]; expected"),
        (("a", ["b"]), "pairs a string with a list"),
        (("a", "b", "c"), "expected a string"),
        ((("a", "b"), "c"), "expected a string"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_wrong_texts_are_refused(text, message):
    with pytest.raises((ValueError, TypeError), match=message):
        row(text)


LONG = " ".join(["a"] * 9)


@pytest.mark.parametrize(
    ("text", "size", "overflow", "message"),
    [
        ("배 \ud800를", 9, "raise", r"text 7 holds a lone surrogate, U\+D800 at character 2: half of a character"),
        (["배", "를\udfff"], 9, "raise", r"text 7 holds a lone surrogate, U\+DFFF at character 1 of word 1"),
        (("a", "\ud800"), 9, "raise", "text 7 holds a lone surrogate"),
        (LONG, 3, "windows", "text 7 has 9 pieces, and a window of 3 has room for one; use max_length=4"),
        ((LONG, "a"), 9, "windows", "text 7 has a first part of 9 pieces, which leaves no window for the second"),
        ((LONG, "a"), 4, "truncate", "text 7 is a pair, and max_length=4 has no room"),
        (LONG, 9, "raise", "text 7 has 11 pieces, the model takes 9"),
        ("", 9, "raise", "text 7 is empty"),
    ],
)
def test_a_text_that_cannot_be_encoded_is_named(text, size, overflow, message):
    with pytest.raises(BadText, match=message) as caught:
        to_row(text, 7, TOKENIZER, size, overflow, None)
    assert caught.value.number == 7


def test_a_refusal_of_the_tokenizer_names_the_text(monkeypatch):
    def refuse(self, *texts):
        raise ValueError("no such piece")

    monkeypatch.setattr(WordPiece, "encode", refuse)
    with pytest.raises(BadText, match="text 7 cannot be tokenised: '배를': no such piece"):
        to_row("배를", 7, TOKENIZER, 9, "raise", None)


def test_shapes_are_few():
    assert len({width_for(length, 512) for length in range(1, 513)}) == 9
    assert len({height_for(rows, 32) for rows in range(1, 33)}) == 6
    assert all(width_for(length, 40) <= 40 for length in range(1, 41))


@pytest.mark.parametrize("size", [8, 9, 12, 30])
def test_pairs_with_two_separators_are_truncated_and_windowed(goldens, size):
    from bert_elmo_jax.text import load_tokenizer

    tokenizer = load_tokenizer(goldens / "tokenizers" / "roberta_tiny")
    first, second = (
        tokenizer.encode("the ship", specials=False).ids,
        tokenizer.encode("강을 건넜다", specials=False).ids,
    )
    full_encoding = tokenizer.encode("the ship", "강을 건넜다")
    row = to_row(("the ship", "강을 건넜다"), 0, tokenizer, size, "truncate", None)
    ids = row.encoding.ids.tolist()
    assert len(ids) == min(size, len(full_encoding))
    place = row.encoding.second
    assert ids[0] == 0 and ids[place - 2 : place] == [2, 2] and ids[-1] == 2
    assert ids[1 : place - 2] == first.tolist()[: place - 3]
    assert ids[place:-1] == second.tolist()[: len(ids) - place - 1]
    assert row.prefix == place
    windows = to_row(("the ship", "강을 건넜다"), 0, tokenizer, len(first) + 8, "windows", None)
    assert len(windows.windows) > 1
    for window in range(len(windows.windows)):
        window_ids = windows.take(full_encoding.ids, window).tolist()
        assert window_ids[: len(first) + 3] == [0, *first.tolist(), 2, 2] and window_ids[-1] == 2
    with pytest.raises(BadText, match="is empty, or has nothing the tokenizer knows"):
        to_row(("", ""), 0, tokenizer, 30, "raise", None)


def test_windows_of_a_text_without_special_pieces(goldens):
    from bert_elmo_jax.text import load_tokenizer

    tokenizer = load_tokenizer(goldens / "tokenizers" / "gpt2_tiny")
    ids = tokenizer.encode("the ship sank at night").ids.tolist()
    text_row = to_row("the ship sank at night", 0, tokenizer, 6, "windows", 3)
    assert tokenizer.frame.count(pair=False) == 0 and len(ids) > 9
    windows = [text_row.take(np.array(ids), window).tolist() for window in range(len(text_row.windows))]
    assert windows[0] == ids[:6] and windows[1] == ids[3:9] and windows[-1] == ids[-6:]
    assert [text_row.length(window) for window in range(len(windows))] == [6] * len(windows)
    assert len(text_row.owners()) == len(ids)
