"""Examples of `bert_elmo_jax.families.elmo.batch`."""

import re

import pytest

from bert_elmo_jax.families.elmo.batch import check_boundaries, distinct_words, word_ids


def test_example_of_distinct_words():
    places, lengths, words = distinct_words([[[259, 98, 260], [259, 99, 260], [259, 98, 260]]], 3)
    assert (places.tolist(), lengths.tolist(), len(words)) == ([[2, 3, 2]], [3], 2)


def test_example_of_check_boundaries():
    assert (check_boundaries(None, (0, 1), "weights"), check_boundaries(None, None, "weights")) == ("strip", "given")


def test_example_of_word_ids():
    with pytest.raises(
        ValueError,
        match=re.escape("word id 9 at row 0, column 1 is outside 0 to 8; the model has embeddings for 9 words"),
    ):
        word_ids([[3, 9]], None, 9)
