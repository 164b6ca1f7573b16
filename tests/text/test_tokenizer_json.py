"""The exported tokenizer.json gives the ids of the tokenizer, with its frame."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bert_elmo_jax.data.tasks.examples import TaggedSentence
from bert_elmo_jax.data.tasks.rows import _pieces
from bert_elmo_jax.evals.character_tags import spread_tags
from bert_elmo_jax.exports.read_words import read_words
from bert_elmo_jax.exports.runner import tag_characters, trim_spaces
from bert_elmo_jax.text import load_tokenizer, train_sentencepiece
from bert_elmo_jax.text.tokenizer_json import tokenizer_json

GOLDENS = Path(__file__).parents[1] / "goldens"
KINDS = ("bert_tiny", "roberta_tiny", "gpt2_tiny", "deberta_v3_tiny", "albert_tiny", "mpnet_tiny")
TEXTS = [
    "The river is old.",
    "  강가의 은행,  bank's \t a",
    "Café ``naïve'' ﬁ",
    "x",
    "日本 語 12,345.6",
    "the river\nbank 🙂",
    "\u1112\u1161\u11ab\u1100\u1173\u11af a\u0301",  # decomposed, as in the names of files on macOS
    "river\x85bank\x1criver",
]


@pytest.mark.parametrize("name", KINDS)
def test_ids_and_types_are_those_of_the_tokenizer(name):
    ours = load_tokenizer(GOLDENS / name)
    theirs = Tokenizer.from_str(tokenizer_json(ours).decode())
    for text in [*TEXTS, f"a {ours.tokens[ours.mask_id]} b"]:
        assert theirs.encode(text).ids == ours.encode(text).ids.tolist()
    first, second = theirs.encode("the river", "old bank"), ours.encode("the river", "old bank")
    assert first.ids == second.ids.tolist()
    assert first.type_ids == second.types.tolist()


@pytest.mark.parametrize("name", KINDS)
def test_words_have_the_pieces_and_places_of_the_tokenizer(name):
    ours = load_tokenizer(GOLDENS / name)
    theirs = Tokenizer.from_str(tokenizer_json(ours).decode())
    sentences = [text.split() for text in [*TEXTS, "a \u200b river 🙂 ñ ß", "\u0325 old ① ヴ don't"]]
    rows, places = read_words(theirs, sentences, ours.tokens[ours.unk_id])
    for words, row, row_places in zip(sentences, rows, places):
        expected = ours.encode_words(words)
        assert row.ids == expected.ids.tolist()
        assert row_places == [expected.word_ids.tolist().index(number) for number in range(len(words))]


@pytest.mark.parametrize("name", KINDS)
def test_characters_have_the_tags_of_the_tokenizers_pieces(name):
    ours = load_tokenizer(GOLDENS / name)
    theirs = Tokenizer.from_str(tokenizer_json(ours).decode())
    for text in [*TEXTS[:2], "서울역 앞 ", " a river 🙂 "]:
        _, places = _pieces(TaggedSentence(tuple(text), None, "", (0,) * len(text), 0), ours, characters=True)
        expected = spread_tags(text, ["" if n < 0 else f"B-{n}" for n in places])
        row = theirs.encode(text, add_special_tokens=False)
        assert tag_characters(text, trim_spaces(text, row.offsets), [f"B-{n}" for n in range(len(row.ids))]) == expected


def test_marian_and_a_sentencepiece_model_of_merges_have_none():
    assert tokenizer_json(load_tokenizer(GOLDENS / "tokenizers" / "marian")) is None
    tokenizer = train_sentencepiece(["배를 타고", "배를 보다"] * 9, vocab_size=30, model="bpe")
    assert tokenizer_json(tokenizer) is None
