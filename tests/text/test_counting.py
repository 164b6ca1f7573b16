"""Examples of `bert_elmo_jax.text.training`."""

from collections import Counter

from bert_elmo_jax.text.training import choose_alphabet, count_strings


def test_example_of_count_strings():
    assert sorted(count_strings(["the sea\nthe ship", "the\tsea"]).items()) == [
        ("sea", 1),
        ("ship", 1),
        ("the", 2),
        ("the\tsea", 1),
    ]


def test_example_of_choose_alphabet():
    assert choose_alphabet(Counter({"sea": 3, "배": 1}), 20, lambda character: [character, character.upper()]) == [
        "A",
        "E",
        "S",
        "a",
        "e",
        "s",
        "배",
        "배",
    ]
