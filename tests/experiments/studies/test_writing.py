"""Texts from masks and from a language model, on models with known probabilities."""

from types import SimpleNamespace

import numpy as np
import pytest

from bert_elmo_jax.toyworld import ToyWorld, word_log_probabilities
from experiments.studies.writing import (
    ORDERS,
    Story,
    compare_writing,
    distinct,
    fill_in,
    lay_out,
    log_likelihoods,
    read_stories,
    score_masked,
    score_next,
    score_texts,
)

WORLD = ToyWorld("en", topics=2, words=2)
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORLD.network.words)
MASK = 4


class Words:
    """A tokenizer with one piece per word."""

    tokens, mask_id = list(WORDS), MASK

    def encode_words(self, words):
        ids = [2, *(self.tokens.index(word) if word in self.tokens else 1 for word in words), 3]
        return SimpleNamespace(ids=np.array(ids), word_ids=np.array([-1, *range(len(words)), -1]))


class Even:
    """A model with equal probabilities for all pieces except those with given logits."""

    tokenizer, config = Words(), SimpleNamespace(pad_id=0)

    def __init__(self, favoured=(), by=0.0):
        self.favoured, self.by, self.calls = list(favoured), by, 0

    def forward(self, tokens, mask=None):
        self.calls += 1
        logits = np.zeros((*tokens.shape, len(WORDS)))
        logits[..., self.favoured] = self.by
        return SimpleNamespace(logits=logits)

    def generate(self, tokens, max_new, temperature, ends, seed):
        assert temperature == 1
        draw = np.random.default_rng(seed)
        return [[SimpleNamespace(ids=[*draw.integers(5, len(WORDS), 4).tolist(), ends[0]])] for _ in tokens]


@pytest.fixture(scope="module")
def stories():
    return read_stories(WORLD, 30)


@pytest.mark.parametrize("order", ORDERS)
def test_masks_are_filled_from_the_model(order):
    """Each draw follows the probabilities of the model given everything that is shown."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(6, 6))

    def logits(rows):
        """The piece at a place depends on the previous one."""
        before = np.roll(rows, 1, axis=1)
        return table[before]

    rows = np.full((4_000, 3), 5)
    rows[:, 0] = 1
    filled = fill_in(logits, rows, mask=5, allowed=[0, 1, 2, 3], order=order, seed=1, sweeps=1)
    assert (filled[:, 0] == 1).all() and set(np.unique(filled[:, 1:])) == {0, 1, 2, 3}
    expected = np.exp(table[1, :4]) / np.exp(table[1, :4]).sum()
    assert np.bincount(filled[:, 1], minlength=4) / 4_000 == pytest.approx(expected, abs=0.03)
    if order == "left to right":
        after = filled[filled[:, 1] == 2][:, 2]
        expected = np.exp(table[2, :4]) / np.exp(table[2, :4]).sum()
        assert np.bincount(after, minlength=4) / len(after) == pytest.approx(expected, abs=0.06)
    np.testing.assert_array_equal(filled, fill_in(logits, rows, 5, [0, 1, 2, 3], order, seed=1, sweeps=1))


def test_the_surest_mask_comes_first():
    shown = []

    def logits(rows):
        shown.append(rows.copy())
        scores = np.zeros((*rows.shape, 4))
        scores[:, 2, 1] = 9.0  # the third place is the surest
        return scores

    fill_in(logits, np.array([[0, 3, 3]]), mask=3, allowed=[1, 2], order="confidence")
    assert shown[-1].tolist() == [[0, 3, 1]]


def test_rows_with_fewer_masks_stay_as_they_are():
    filled = fill_in(lambda rows: np.zeros((*rows.shape, 3)), np.array([[2, 2], [1, 2]]), 2, [0], "gibbs")
    assert filled.tolist() == [[0, 0], [1, 0]]


@pytest.mark.usefixtures("as_users_run")
def test_an_order_that_is_not_known():
    with pytest.raises(ValueError, match="order='backward': it is one of left to right, confidence, gibbs"):
        fill_in(lambda rows: rows, np.array([[2]]), 2, [0], "backward")


def test_likelihoods_are_those_of_the_toy_world(stories):
    """The probability that the document ends is left out."""
    for story, likelihood in zip(stories, log_likelihoods(WORLD, stories)):
        [each] = word_log_probabilities(WORLD, [f"{story.opening} {story.following}"], "document")
        assert likelihood == pytest.approx(each[len(story.opening.split()) : -1].sum(), abs=1e-6)


def test_texts_that_are_impossible_in_the_toy_world(stories):
    wrong = [story._replace(following=text) for story, text in zip(stories, ("the the .", "dog .", "", "[UNK] ."))]
    scores = score_texts(WORLD, [*stories[:4], *wrong])
    assert scores.possible == 0.5
    assert scores.true == score_texts(WORLD, stories[:4]).true
    assert score_texts(WORLD, wrong).true == np.inf


def test_groups_of_words():
    assert distinct(["a b c", "a b d"], 2) == 0.75
    assert distinct(["a b c", "a b d"], 3) == 1
    assert distinct(["a"], 2) == 0


def test_perplexities_of_known_models(stories):
    size = len(WORDS)
    assert score_next(Even(), stories) == pytest.approx(size)
    assert score_masked(Even(), stories, batch=16) == pytest.approx(size)
    rows, places = lay_out(Even(), stories)
    true = {int(i) for row, place in zip(rows, places) for i in row[place]}
    better = Even(sorted(true), by=2.0)
    expected = (len(true) * np.exp(2) + size - len(true)) / np.exp(2)
    assert score_next(better, stories) == pytest.approx(expected)


def test_a_word_of_several_pieces_is_refused(stories):
    class Split(Words):
        def encode_words(self, words):
            return SimpleNamespace(ids=np.array([2, 5, 6, 3]), word_ids=np.array([-1, 0, 0, -1]))

    encoder = Even()
    encoder.tokenizer = Split()
    with pytest.raises(ValueError, match="words of several pieces"):
        lay_out(encoder, [Story("One", "day")])


def test_every_way_of_writing_has_a_row():
    rows = compare_writing(Even(), Even(), WORLD, count=6)
    assert [row.way for row in rows][:2] == ["the toy world", "language model"]
    assert [row.way for row in rows][2:] == [f"masks, {order}" for order in ORDERS]
    assert rows[0].scores.possible == 1 and rows[1].scores.possible < 1
    for row in rows[2:]:
        assert [len(s.following.split()) for s in row.stories] == [len(s.following.split()) for s in rows[0].stories]
        assert not {"[MASK]", "[SEP]"} & {word for story in row.stories for word in story.following.split()}
