import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.encoders.sentences import batches, max_rows, width_for
from bert_elmo_jax.families.elmo.batch import PIECES, number_words, pad, pieces, used_characters
from bert_elmo_jax.text.characters import PAD_CHARACTER, boundary_characters, character_table


@given(st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1), min_size=1))
def test_numbers_lead_back_to_the_words(sentences):
    distinct, rows = number_words(sentences)
    assert sorted(distinct) == sorted({word for words in sentences for word in words})
    for words, row in zip(sentences, rows, strict=True):
        assert [row[0], row[-1]] == [0, 1]
        assert [distinct[n - 2] for n in row[1:-1]] == words


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=80), st.integers(1, 40))
def test_batches_hold_every_row_once(lengths, batch_size):
    groups = list(batches(lengths, batch_size))
    assert sorted(n for batch in groups for n in batch) == list(range(len(lengths)))
    longest = [max(lengths[n] for n in batch) for batch in groups]
    assert longest == sorted(longest, reverse=True)
    for batch in groups:
        assert len(batch) <= batch_size
        words, found_lengths = pad([np.arange(lengths[n]) for n in batch], batch_size)
        assert found_lengths[: len(batch)].tolist() == [lengths[n] for n in batch]
        assert not found_lengths[len(batch) :].any()
        # Memory does not grow with the length of rows, but where a single one is longer than all of a usual batch.
        assert words.size <= max(batch_size * 512, width_for(max(longest)))


def test_shapes_of_batches_are_few():
    shapes = {
        pad([np.arange(length)] * rows, 32)[0].shape
        for length in range(1, 600, 3)
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
    indices = []
    for which, piece in pieces(table):
        assert len(piece) in PIECES
        assert piece.shape[1] in {16, 24, 32, max_characters}
        assert piece.shape[1] <= max_characters
        width = piece.shape[1]
        assert np.array_equal(piece[: len(which)], table[which, :width])
        assert (table[which, width:] == PAD_CHARACTER).all()
        indices += which.tolist()
    assert sorted(indices) == list(range(len(words)))


def test_little_is_wasted_on_words():
    for count in range(1, 2000, 7):
        table = np.repeat(boundary_characters(50)[:1], count, axis=0)
        computed = sum(len(piece) for _, piece in pieces(table))
        assert count <= computed <= max(8, count * 1.34 + 8)


def test_characters_behind_a_zero_are_kept():
    """A word may hold 0 and then padding, in ids made by hand; cut behind the 0 it would be another word."""
    table = character_table(["ab"], 50)
    assert used_characters(table).tolist() == [4]
    table[0, 4] = 0
    assert used_characters(table).tolist() == [50]
