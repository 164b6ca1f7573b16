"""Wrong arguments of `generate` and `stream`: each is one clear line."""

import re

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.text import train_byte_bpe

from .toy_writer import FAMILY, make_writer

pytestmark = pytest.mark.usefixtures("as_users_run")


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy_writer", FAMILY)


@pytest.fixture
def writer():
    return make_writer()[0]  # 19 pieces, 64 positions, no tokenizer


WRONG = [
    ({"max_new": 0}, "max_new=0: use a whole number, at least 1"),
    ({"max_new": 2.5}, "max_new=2.5: use a whole number"),
    ({"min_new": 9, "max_new": 8}, "min_new=9: use a whole number, 0 to 8, at most max_new"),
    ({"beams": 20}, "beams=20 is larger than the vocabulary: the model writes 19 pieces"),
    ({"beams": 0}, "beams=0: use a whole number, at least 1"),
    ({"beams": 2, "n_best": 3}, "n_best=3, but beams=2: a search finds as many texts as it has beams"),
    ({"n_best": 2}, "n_best=2, but beams=1"),
    ({"temperature": 0}, "temperature=0: use a number above 1e-06"),
    ({"n_best": 10**7, "temperature": 1.0}, "n_best=10000000: use a whole number, 1 to 10000"),
    ({"temperature": 1e-38}, "temperature=1e-38: use a number above 1e-06"),
    ({"beams": 2, "max_new": 32, "length_penalty": -80}, "length_penalty=-80 for max_new=32"),
    ({"temperature": -1.0}, "temperature=-1.0: use a number above 1e-06"),
    ({"temperature": float("nan")}, "temperature=nan: use a number above 1e-06"),
    ({"temperature": "hot"}, "temperature='hot': use a number above 1e-06"),
    ({"top_k": 0}, "top_k=0: use a whole number, at least 1"),
    ({"top_p": 0.0}, "top_p=0.0: use a number above 0, up to 1"),
    ({"top_p": 1.5}, "top_p=1.5: use a number above 0, up to 1"),
    ({"beams": 2, "top_p": 0.9}, "beams=2 searches for the best text, and temperature, top_k and top_p draw one"),
    ({"repetition_penalty": 0}, "repetition_penalty=0: use a number above 0; 1 is no penalty"),
    ({"length_penalty": "short"}, "length_penalty='short': use a number, such as 0.6"),
    ({"length_rule": "wu"}, "length_rule='wu' is not known; use 'power' or 'gnmt'"),
    ({"early_stopping": 1}, "early_stopping=1 is not known; use True, False or 'never'"),
    ({"early_stopping": "always"}, "early_stopping='always' is not known"),
    ({"ends": [19]}, "an id in ends=19: use a whole number, 0 to 18, the vocabulary"),
    ({"ends": ["."]}, "has no tokenizer, and pieces in ends= are names"),
    ({"ends": 1.5}, "ends=1.5: use a list of ids or pieces"),
    ({"stop": "."}, "has no tokenizer, and stop= is a text"),
    ({"stop": [5]}, "stop=[5]: use a text or a list of texts; ids are for ends="),
    ({"stop": [""]}, 'stop holds "", which every text contains'),
    ({"seed": -1}, "seed=-1: use a whole number, 0 to"),
    ({"seed": 2**32}, "seed=4294967296: use a whole number, 0 to 4294967295"),
    ({"batch_size": 0}, "batch_size=0: use a whole number, at least 1"),
    ({"tokens": [[1] * 65]}, "prompt 0 has 65 pieces, but the model has 64 positions: cut it"),
    ({"tokens": [[1], [1] * 60], "max_new": 6}, "prompt 1 has 60 pieces, and the model has 64 positions, so max_new=6"),
    ({"tokens": [[1] * 60], "max_new": 6}, "is too many: use 5 or fewer, or cut the prompt"),
    ({"tokens": [[4], []]}, "prompt 1 is empty: give at least one piece"),
    ({"tokens": []}, "no prompts were given: the list is empty"),
    ({"tokens": [[4, 19]]}, "prompt 0 holds the id 19, which is outside of the vocabulary: its ids are 0 to 18"),
    ({"tokens": [[4, -1]]}, "prompt 0 holds the id -1"),
    ({"tokens": [4, 5]}, "prompt 0 is 4; expected a text or a list of ids, such as [[5, 7, 2]] for one prompt"),
    ({"tokens": [[4.5]]}, "prompt 0 is [4.5]; expected a text or a list of ids"),
    ({"tokens": 7}, "tokens is 7; expected a list of texts, or of lists of ids"),
    ({"tokens": ["text"]}, "has no tokenizer, and a prompt is a text"),
    ({"tokens": None}, "there is no prompt: give a list of texts, or lists of ids with tokens="),
    ({"prompts": [[1]]}, "prompts and tokens were given"),
    ({"tokens": None, "source": [[1]]}, "source= is for a model that translates; this one continues a prompt: write"),
]  # fmt: skip


def test_wrong_arguments(writer):
    for arguments, message in WRONG:
        with pytest.raises((ValueError, TypeError), match=re.escape(message)) as error:
            writer.generate(**{"tokens": [[5, 7]], "max_new": 8, **arguments})
        assert "\n" not in str(error.value)
    writer, _, _ = make_writer(ends=())  # as many pieces as positions
    assert len(writer.generate(tokens=[[1] * 60], max_new=5)[0][0].ids) == 5
    assert len(writer.generate(tokens=[[1] * 64], max_new=1)[0][0].ids) == 1


def test_a_model_that_translates():
    writer, _, _ = make_writer(first=1, ends=())
    for options, message in [
        ({"tokens": [[1]]}, "this one translates: write source="),
        ({"source": [[]]}, "prompt 0 is empty: there is nothing to translate"),
        ({"source": [[1]], "max_new": 65}, "the model has 64 positions, so max_new=65 is too many: use 64 or fewer"),
        ({"source": [[1] * 65]}, "prompt 0 has 65 pieces, but the model has 64 positions"),
        ({}, "lists of ids with source="),
    ]:
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            writer.generate(**options)
    assert len(writer.generate(source=[[1] * 64], max_new=64)[0][0].ids) == 64


def test_streams(writer):
    with pytest.raises(ValueError, match="no tokenizer, so there is no text to stream"):
        writer.stream([5, 7])
    tokenizer = train_byte_bpe(["배를 타고 강을 건넜다"] * 9, vocab_size=300)
    text_writer, _, _ = make_writer(tokenizer, vocab_size=300)
    wrong = [({"temperature": 0}, "temperature=0"), ({"every": 0}, "every=0"), ({"max_new": 99}, "is too many")]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):  # on the call, not on the first part
            text_writer.stream("배를", **options)
    with pytest.raises(ValueError, match=re.escape("stop=['.'] is a text, which a beam search does not follow")):
        text_writer.generate("배를", beams=2, stop=".")
    with pytest.raises(ValueError, match="ends holds 'river', which is no piece of this vocabulary"):
        text_writer.generate("배를", ends="river")


def test_families_that_do_not_write(goldens):
    for name, called in (("bert_tiny", "a BERT"), ("elmo_tiny", "an ELMo"), ("lm.pth", "an AWD-LSTM")):
        model = load(goldens / ("awd_lstm_tiny/lm.pth" if name == "lm.pth" else name))
        for call in (model.generate, model.stream):
            with pytest.raises(ValueError, match=f"{name}: {called} does not write; .*a toy writer can"):
                call("text")
