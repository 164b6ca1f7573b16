"""Tests of suggestions for misspelt names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.prepare import Request
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.data.tasks import read_tagged, read_texts, task_named
from bert_elmo_jax.did_you_mean import did_you_mean, near_file, nearest
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.networks import TaggerConfig
from bert_elmo_jax.text import Lexicon

TASKS = ["sst2", "stsb", "squad", "korquad", "klue_ner", "klue_nli", "한국어"]


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("SQuAD", "squad"),
        ("SST-2", "sst2"),
        ("klue-nerr", "klue_ner"),
        ("korqad", "korquad"),
        ("한국", "한국어"),
        ("zebra", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_nearest(given_name, name):
    assert nearest(given_name, TASKS) == name
    assert did_you_mean(given_name, TASKS) == (f"; did you mean {name}?" if name else "")


def test_names_that_differ_only_in_case():
    assert nearest("Adam", ["adam", "ADAM"]) == "adam"
    assert nearest("adam", []) is None


def test_any_iterable():
    assert nearest("froze", (name for name in ("all", "frozen"))) == "frozen"
    assert nearest("froze", {"all": 1, "frozen": 2}) == "frozen"


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=8))
def test_suggestions_are_known_names(name, names):
    assert nearest(name, names) in (*names, None)


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=8), st.data())
def test_a_known_name_is_its_own_nearest(names, data):
    name = data.draw(st.sampled_from(names))
    suggestion = nearest(name, names)
    assert suggestion is not None
    assert suggestion.casefold().replace("-", "_") == name.casefold().replace("-", "_")


SUGGESTED = {
    "base": lambda: BertConfig.preset("bert-base"),
    "large": lambda: BertConfig.preset("Large"),
    "original": lambda: ElmoConfig.preset("orignal"),
    "bfloat16": lambda: BertConfig(dtype="bfloat"),
    "fused": lambda: BertConfig(attention="fuse"),
    "characters": lambda: ElmoConfig(input="character"),
    "gelu": lambda: BertConfig(activation="GeLU"),
    "sentences": lambda: PieceExamples(objective="sentence"),
    "chunk": lambda: PieceExamples(short_per="chunks"),
    "span": lambda: Masking("spans"),
    "streams": lambda: LanguageModelExamples("stream", 20),
    "classes": lambda: Lexicon([], "class", 4),
    "korquad": lambda: task_named("KorQuAD1"),
    "sst2": lambda: read_texts("train.tsv", "SST-2"),
    "wnut17": lambda: read_tagged("train.conll", "wnut"),
    "sentencepiece": lambda: Request(("a.txt",), "out", tokenizer="sentence-piece"),
    "concat": lambda: Features((-1,), combine="concatenate"),
    "softmax": lambda: TaggerConfig(num_tags=3, num_words=9, output="soft-max"),
    "between": lambda: TaggerConfig(num_tags=3, num_words=9, places="input,betwen"),
}


@pytest.mark.parametrize("meant", SUGGESTED)
@pytest.mark.usefixtures("as_users_run")
def test_messages_suggest_a_name(meant):
    with pytest.raises(ValueError, match=rf"; did you mean {meant}\?"):
        SUGGESTED[meant]()


def test_near_file_keeps_the_spelling_of_the_path(tmp_path, monkeypatch):
    (tmp_path / "소설.txt").touch()
    (tmp_path / "novels").mkdir()
    (tmp_path / "texts.csv").touch()
    monkeypatch.chdir(tmp_path)
    assert near_file("소셜.txt") == "; did you mean 소설.txt?"
    assert near_file("../" + tmp_path.name + "/text.csv") == f"; did you mean ../{tmp_path.name}/texts.csv?"
    for nothing in ("novel", "zebra.txt", "nowhere/texts.csv", "a\0b/texts.csv", ""):
        assert near_file(nothing) == ""


def test_example_of_near_file():
    assert (
        "there is no such file" + near_file("tests/goldens/maek.py")
        == "there is no such file; did you mean tests/goldens/make.py?"
    )
    assert near_file("no/such/folder/novel.txt") == ""
