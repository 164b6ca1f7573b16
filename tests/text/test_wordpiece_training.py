"""Examples of `bert_elmo_jax.text.training`."""

from collections import Counter

from bert_elmo_jax.text.training import count_words, learn_pieces
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions


def test_example_of_count_words():
    assert sorted(count_words(["A ship, a sea."], WordPieceOptions(lowercase=True)).items()) == [
        (",", 1),
        (".", 1),
        ("a", 2),
        ("sea", 1),
        ("ship", 1),
    ]


def test_example_of_learn_pieces():
    assert learn_pieces(Counter({"sea": 3, "seas": 2, ".": 9}), 15)[5:] == [
        "##a",
        "##e",
        "##s",
        ".",
        "a",
        "e",
        "s",
        "##ea",
        "sea",
        "seas",
    ]
