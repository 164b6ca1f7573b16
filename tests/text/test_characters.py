"""Tests of ELMo's character ids against AllenNLP's ids and a plain loop."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.text import boundary_characters, character_table


def plain_ids(word: str, most: int) -> list[int]:
    ids = [258, *word.encode()[: most - 2], 259]
    return [number + 1 for number in ids + [260] * (most - len(ids))]


def test_character_ids_match_allennlp(shared):
    folder = shared / "goldens" / "elmo_tiny"
    sentences = json.loads((folder / "sentences.json").read_text("utf-8"))
    outputs = np.load(folder / "outputs.npz")
    for number, batch in enumerate(sentences):
        expected = outputs[f"{number}/char_ids"]
        for row, sentence in enumerate(batch):
            np.testing.assert_array_equal(character_table(sentence, 50), expected[row, : len(sentence)])
            assert (expected[row, len(sentence) :] == 0).all(), "0 is left for words that are only padding"


@given(words=st.lists(st.text(max_size=20), max_size=8), most=st.integers(3, 60))
def test_character_ids_match_a_loop(words, most):
    table = character_table(words, most)
    assert table.shape == (len(words), most)
    assert table.dtype == np.int32
    assert table.tolist() == [plain_ids(word, most) for word in words]


def test_words_of_any_script_and_length():
    words = ["", "배", "😀", "a" * 47, "a" * 48, "a" * 49, "가" * 1000, "\0", "नमस्ते"]
    assert character_table(words).tolist() == [plain_ids(word, 50) for word in words]
    # Long words are cut between bytes.
    assert character_table(["배를"], 6).tolist() == [[259, *(b + 1 for b in "배를".encode()[:4]), 260]]
    assert character_table([]).shape == (0, 50)
    for most in (3, 50):
        pad = [261] * (most - 3)
        assert boundary_characters(most).tolist() == [[259, 257, 260, *pad], [259, 258, 260, *pad]]


def test_invalid_words_raise():
    with pytest.raises(ValueError, match=r"text 1 holds a lone surrogate, U\+DC00 at character 2"):
        character_table(["ok", "ab\udc00"])
