"""Every batch's ids are below the vocabulary: damaged shards are found before a step reads them."""

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.data.pipeline.feeds import check_ids
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.data.rows.translation import PairExamples


def damage(store, part, value):
    """Overwrite one id of every shard; the size of the files stays the same."""
    for file in store.glob(f"shard-*/{part}/tokens.npy"):
        tokens = np.load(file)
        tokens[len(tokens) // 2] = value
        np.save(file, tokens)


@pytest.fixture(params=["pieces", "words", "pairs"])
def corpus(request, tmp_path):
    """Return a corpus, and the examples that read it."""
    if request.param == "pieces":
        return toy_corpus(tmp_path / "c", documents=60, heldout=0.3), PieceExamples(length=32, objective="documents")
    if request.param == "words":
        word_corpus = toy_corpus(tmp_path / "c", documents=60, heldout=0.3, tokenizer="words")
        return word_corpus, LanguageModelExamples("sentences", 10, "words")
    pairs = toy_pairs(tmp_path / "c", topics=2, words=2, documents=200, heldout=0.3)
    return pairs, PairExamples(24, 24, start=2, end=3, pad=0)


def read(corpus, part):
    store, examples = corpus
    batches = eval_batches(store, examples, 4) if part == "heldout" else train_batches(store, examples, 4)
    for _, batch in zip(range(200), batches):
        assert batch


def test_sound_corpora_pass_and_damaged_ones_are_refused(corpus):
    expected = r"a batch has the id 60000 in \w+, and the vocabulary has the ids 0 to \d+: the"
    for part in ("train", "heldout"):
        read(corpus, part)
        damage(corpus[0], part, 60_000)
        if isinstance(corpus[1], LanguageModelExamples):
            read(corpus, part)  # ids beyond the vocabulary are unknown words in a store of words
        else:
            with pytest.raises(ValueError, match=expected):
                read(corpus, part)


def test_negative_ids_and_tables_of_characters():
    with pytest.raises(ValueError, match="the id -1 in target_out"):
        check_ids({"target_out": np.array([3, -1], np.int32)}, 10)
    rows = {"words_forward": np.array([[40]], np.int32), "characters": np.zeros((1, 50, 3), np.int32)}
    check_ids(rows, 10)  # places in the table of characters
    with pytest.raises(ValueError, match="the id 40 in words_forward"):
        check_ids({"words_forward": rows["words_forward"]}, 10)
    check_ids({"tokens": np.zeros((0, 4), np.int32)}, 10)
