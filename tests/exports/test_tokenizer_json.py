"""The exported tokenizer.json gives the ids of the tokenizer, with its frame."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bert_elmo_jax.exports.tokenizer_json import tokenizer_json
from bert_elmo_jax.text import load_tokenizer, train_sentencepiece

GOLDENS = Path(__file__).parents[1] / "goldens"
KINDS = ("bert_tiny", "roberta_tiny", "gpt2_tiny", "deberta_v3_tiny", "albert_tiny", "mpnet_tiny")
TEXTS = [
    "The river is old.",
    "  강가의 은행,  bank's \t a",
    "Café ``naïve'' ﬁ",
    "x",
    "日本 語 12,345.6",
    "the river\nbank 🙂",
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


def test_a_sentencepiece_model_of_merges_has_none():
    tokenizer = train_sentencepiece(["배를 타고", "배를 보다"] * 9, vocab_size=30, model="bpe")
    assert tokenizer_json(tokenizer) is None
