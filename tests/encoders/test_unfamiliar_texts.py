"""Warnings about texts that a tokenizer knows little of: each call once, with the share, and none without reason."""

import copy
import dataclasses
import os
import warnings

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.encoders.unfamiliar_texts import UnfamiliarTexts, describe_unfamiliar
from bert_elmo_jax.text import load_tokenizer, train_wordpiece

from ..inference.test_task_model import write

TOKENIZER = train_wordpiece(["the old river bank", "the ship sank"] * 9, vocab_size=60)
KOREAN = ["강가에 있는 은행", "배를 타고 강을 건넜다", "배가 부르다"]
KNOWN_TEXTS = ["the old ship", "where the ship sank"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unfamiliar")
    return load(write(folder / "sst2", "sst2", labels=("0", "1")))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    return load(write(tmp_path_factory.mktemp("unfamiliar") / "uner", "uner", labels=("B-LOC", "I-LOC", "O")))


def as_released(model):
    """Return the model with a task that does not say whether it reads pairs."""
    released = copy.copy(model)
    released.task = dataclasses.replace(model.task, layout=None)
    return released


UNKNOWN = ["Zürich öäß", "Ünü ßß", "日本 語"]


@pytest.mark.parametrize(
    "call",
    [
        lambda model, texts: model.encode(texts),
        lambda model, texts: list(model.encode_batches(texts, batch_size=1)),
        lambda model, texts: model.sentences(texts),
        lambda model, texts: model.predict(texts),
        lambda model, texts: as_released(model).score([(text, text) for text in texts]),
    ],
    ids=["encode", "encode_batches", "sentences", "predict", "score"],
)
def test_each_call_warns_once(model, call):
    with pytest.warns(UnfamiliarTexts, match=r"\d+% of the pieces of these texts are \[UNK\] \(\d+ of \d+\)") as caught:
        call(model, UNKNOWN)
    # The type checks of `make proofs` stand between a caller and its function.
    assert len(caught) == 1 and (caught[0].filename == __file__ or "TEST_TYPES" in os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(model, KNOWN_TEXTS)
        call(model, [*KNOWN_TEXTS, "the 강 ship"])


def test_entities_and_warm_up(tagger):
    with pytest.warns(UnfamiliarTexts, match="of the pieces of these texts"):
        tagger.predict(UNKNOWN, aggregation="simple")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.warm_up(lengths=8, rows=1)
    assert tagger.warns_of_texts


def test_the_script_is_named():
    ids = [TOKENIZER.encode(text).ids for text in KOREAN]
    message = describe_unfamiliar(TOKENIZER, ids, KOREAN, "runs/toy")
    assert message.startswith("runs/toy: 100% of the pieces of these texts are [UNK] (9 of 9), so different texts look")
    assert "the letters of the texts are Hangul, and 0 of its" in message and "klue/bert-base" in message


@pytest.mark.parametrize("name", ["gpt2_tiny", "roberta_tiny"])
def test_pieces_of_bytes(goldens, name):
    tokenizer = load_tokenizer(goldens / "tokenizers" / name)

    def describe(texts):
        return describe_unfamiliar(tokenizer, [tokenizer.encode(text).ids for text in texts], texts, name)

    assert "pieces for each character of these texts" in describe(KOREAN)
    for texts in (KNOWN_TEXTS, ["so good 😀😀😀", "…!"], [], ["Zoë said naïve"]):
        assert describe(texts) is None


def test_no_pieces_are_no_reason():
    assert describe_unfamiliar(TOKENIZER, [np.zeros(0, np.int32)], [], "runs/toy") is None


@pytest.mark.parametrize("name", ["cove_tiny", "awd_lstm_tiny", "vectors.txt"])
def test_unknown_words(goldens, name, tmp_path):
    (tmp_path / "vectors.txt").write_text("the 1 2 3\nriver 2 3 1\n", encoding="utf-8")
    model = load((tmp_path if name == "vectors.txt" else goldens) / name)
    with pytest.warns(UnfamiliarTexts, match=r"67% of the words of these texts are unknown \(2 of 3\)") as caught:
        model.encode([["zzz", "qqq"], ["the"]])
    assert len(caught) == 1 and (caught[0].filename == __file__ or "TEST_TYPES" in os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.encode(["the river", ["zzz", "the", "river", "the"]])
