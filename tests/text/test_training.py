"""Training of both kinds of vocabularies, and its examples."""

from collections import Counter

from bert_elmo_jax.text.tokenizer import SPECIALS
from bert_elmo_jax.text.tokenizer_specs import compile_spec
from bert_elmo_jax.text.training import (
    choose_alphabet,
    count_strings,
    count_words,
    learn_model,
    learn_pieces,
    nfc_rules,
)
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions


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


def test_example_of_count_words():
    rules = compile_spec(WordPieceOptions(lowercase=True).spec(SPECIALS), "the rules")
    assert sorted(count_words(["A ship, a sea."], rules).items()) == [
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


def test_example_of_nfc_rules():
    rules = dict(nfc_rules())
    assert [rules[spelling] for spelling in ("하\u11ab", "\u1112\u1161\u11ab", "e\u0301", "\u200b")] == [
        "한",
        "한",
        "é",
        "",
    ]


def test_example_of_learn_model():
    assert learn_model(["배를 타고 배를 보다"] * 3, 30) == learn_model(["배를 보다 배를 타고"] * 3, 30)
