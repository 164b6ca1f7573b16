"""Rows of words with neighbours: their words, counts of neighbours, draws, and a place to resume from."""

from collections import Counter

import numpy as np
import pytest

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.data.rows.word_windows import POWER, CountExamples, Frequencies, WindowExamples
from bert_elmo_jax.text import WordVocabulary

from ..conftest import inline, no_bar

LENGTH = 8
DRAW = np.random.default_rng(0)
TEXT = [[" ".join(DRAW.choice(list("abcdefgh"), 6)) for _ in range(3)] for _ in range(40)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    (folder / "a.txt").write_text("\n\n".join("\n".join(document) for document in TEXT), encoding="utf-8")
    request = Request((str(folder / "a.txt"),), str(folder / "store"), "words", vocab_size=10, heldout=0.1)
    prepare(request, inline, no_bar)
    return folder / "store"


def sentences_of(corpus):
    store = open_store(corpus)
    return [np.asarray(sentence) for document in store for sentence in document]


def test_an_epoch_has_every_frequent_word_once_and_no_pair_across_sentences(corpus):
    examples = WindowExamples(length=LENGTH, sample=0.0, min_count=1)
    batches = train_batches(corpus, examples, 4)
    vocab_size = open_store(corpus).vocab_size
    expected = Counter(word for sentence in sentences_of(corpus) for word in sentence.tolist() if word < vocab_size)
    counted = Counter()
    neighbours = {
        pair
        for sentence in sentences_of(corpus)
        for pair in zip(*(np.delete(sentence, sentence >= vocab_size)[n:].tolist() for n in (0, 1)))
    }
    while batches.epoch < 1 and sum(counted.values()) < sum(expected.values()):
        batch = next(batches)
        real = batch["segments"] > 0
        middle = slice(examples.window, examples.window + LENGTH)
        counted.update(batch["words"][:, middle][batch["reach"] > 0].tolist())
        together = (batch["segments"][:, 1:] == batch["segments"][:, :-1]) & real[:, 1:]
        pairs = zip(batch["words"][:, :-1][together].tolist(), batch["words"][:, 1:][together].tolist())
        assert set(pairs) <= neighbours
        assert ((batch["reach"] > 0) == real[:, middle]).all() and batch["reach"].max() <= examples.window
    for word, count in expected.items():
        assert 0 <= counted[word] - count <= 4 * LENGTH  # the last batch continues in the next epoch


def test_words_are_frequent_in_the_text_and_not_where_their_vocabulary_is_from(corpus, tmp_path):
    vocabulary = WordVocabulary.load(corpus / "tokenizer")
    rare, frequent, more = vocabulary.words[3:6]
    text = f"{frequent} {more} {frequent} {more}\n\n" * 3 + f"{rare} never\n\n"
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    request = Request((str(tmp_path / "b.txt"),), str(tmp_path / "store"), str(corpus / "tokenizer"), heldout=0.0)
    prepare(request, inline, no_bar)
    batch = next(train_batches(tmp_path / "store", WindowExamples(length=LENGTH, sample=0.0, min_count=4), 4))
    assert {*batch["words"][batch["segments"] > 0].tolist()} == {4, 5} == {*batch["negatives"].ravel().tolist()}


@pytest.mark.parametrize("buckets", [0, 50])
def test_batches_resume_at_the_next_row(corpus, buckets):
    examples = WindowExamples(length=LENGTH, min_count=1, sample=0.05, buckets=buckets)
    batches = train_batches(corpus, examples, 4)
    next(batches)
    place = batches.state()
    expected = [next(batches) for _ in range(3)]
    again = train_batches(corpus, examples, 4)
    again.restore(place)
    for batch in expected:
        for name, array in next(again).items():
            np.testing.assert_array_equal(array, batch[name])
    assert len(list(eval_batches(corpus, examples, 4))) > 0


def test_counts_of_neighbours_of_a_plain_loop(corpus):
    vocab_size = open_store(corpus).vocab_size
    expected = Counter()
    for sentence in sentences_of(corpus):
        words = [word for word in sentence.tolist() if word < vocab_size]
        for i, word in enumerate(words):
            for j in range(max(0, i - 3), min(len(words), i + 4)):
                if j != i:
                    expected[word, words[j]] += 1 / abs(i - j)
    [batch] = [next(train_batches(corpus, CountExamples(length=200, window=3, min_count=1), 1))]
    real = batch["counts"] > 0
    counted = dict(zip(zip(batch["words"][real].tolist(), batch["neighbours"][real].tolist()), batch["counts"][real]))
    assert counted == pytest.approx(dict(expected), rel=1e-5)


def test_draws_follow_the_counts():
    words = WordVocabulary.build({"a": 10_000, "b": 1_000, "c": 100, "rare": 3})
    frequencies = Frequencies.of(words, min_count=5, sample=0.01)
    shares = np.diff(frequencies.ends, prepend=0)
    powers = np.array([10_000, 1_000, 100]) ** POWER
    np.testing.assert_allclose(shares[3:6], powers / powers.sum())
    share = 10_000 / 11_100
    assert frequencies.read_shares.tolist() == pytest.approx(
        [0, 0, 0, (0.01 / share) ** 0.5 + 0.01 / share, 0.4442, 1, 0], abs=0.001
    )


def test_a_vocabulary_of_one_word_is_refused():
    with pytest.raises(ValueError, match=r"1 of 2 words of the vocabulary occur 5 times or more.*--config\.min_count"):
        Frequencies.of(WordVocabulary.build({"a": 10, "rare": 3}), min_count=5)


def test_words_of_all_corpora_are_read_by_their_weights():
    words = WordVocabulary.build({"sea": 60, "law": 40})
    sea, law = np.array([0, 0, 0, 600, 0]), np.array([0, 0, 0, 3, 40])
    for corpora in (((sea, 3.0), (law, 1.0)), ((law, 1.0), (sea, 3.0))):
        ends = Frequencies.of(words, min_count=5, corpora=corpora, power=1.0).ends
        assert ends[3] == pytest.approx((3 + 3 / 43) / 4)
    with pytest.raises(ValueError, match=r"1 of 2 words of the vocabulary occur 41 times or more"):
        Frequencies.of(words, min_count=41, corpora=((sea, 1.0), (law, 9.0)))
