"""Tests of both methods of drawing negatives against a loop that draws one word at a time."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bert_elmo_jax.losses import Negatives, draw_negatives
from bert_elmo_jax.losses.sampled_softmax import by_arrival, by_draws, enough_draws, log_uniform, probability

pytestmark = pytest.mark.usefixtures("strict_dtypes")


def probabilities(words):
    """Compute the probabilities in float64."""
    return np.log1p(1 / np.arange(1.0, words + 1)) / np.log(words + 1)


def one_by_one(rng, count, words):
    """Draw words until `count` different ones were seen; return them in order, and the number of tries."""
    distinct_words, tries = [], 0
    while len(distinct_words) < count:
        word = int(np.exp(rng.random() * np.log(words + 1))) - 1
        tries += 1
        if word not in distinct_words:
            distinct_words.append(word)
    return distinct_words, tries


WAYS = {
    "one block of draws": lambda key, count, words: by_draws(key, count, words, draws=200),
    "many blocks of draws": lambda key, count, words: by_draws(key, count, words, draws=3),
    "by arrival": by_arrival,
}


def many(way, count, words, samples):
    keys = jax.random.split(jax.random.key(0), samples)
    ids, tries = jax.jit(jax.vmap(lambda key: WAYS[way](key, count, words)))(keys)
    return np.asarray(ids), np.asarray(tries)


@functools.cache
def drawn_one_by_one(count, words, samples):
    rng = np.random.default_rng(1)
    drawn = [one_by_one(rng, count, words) for _ in range(samples)]
    return np.array([distinct_words for distinct_words, _ in drawn]), np.array([tries for _, tries in drawn])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count, words", [pytest.param(12, 15, marks=pytest.mark.long), (20, 60)])
def test_joint_distribution_matches_drawing_one_by_one(way, count, words):
    samples = 4000
    ids, tries = many(way, count, words, samples)
    their_ids, their_tries = drawn_one_by_one(count, words, samples)
    assert (np.diff(np.sort(ids, axis=1)) > 0).all() and ids.min() >= 0 and ids.max() < words
    assert scipy.stats.ks_2samp(tries, their_tries).pvalue > 1e-3
    # Compare the first words, the last words, all words, and the correlation of the last word with the tries.
    for mine, theirs in ((ids[:, 0], their_ids[:, 0]), (ids[:, -1], their_ids[:, -1]), (ids, their_ids)):
        tables = np.stack([np.bincount(np.ravel(a), minlength=words) for a in (mine, theirs)])
        tables = tables[:, tables.sum(axis=0) > 10]
        assert scipy.stats.chi2_contingency(tables).pvalue > 1e-3
    ours, theirs = (np.corrcoef(pair)[0, 1] for pair in ((ids[:, -1], tries), (their_ids[:, -1], their_tries)))
    assert ours == pytest.approx(theirs, abs=0.08)
    if words == 60:
        # On average over the tries, a word is drawn with probability 1 - (1 - p)^tries. Stopping at the last word
        # makes TensorFlow's formula approximate, with an error of one try.
        expected = np.mean(-np.expm1(tries[:, None] * np.log1p(-probabilities(words))), axis=0)
        np.testing.assert_allclose(np.bincount(ids.ravel(), minlength=words) / samples, expected, atol=0.03)


def test_expected_counts_follow_the_formula():
    ids, tries = np.array([0, 1, 999, 793_470]), 14_000
    ours = Negatives(jnp.zeros(1, jnp.int32), jnp.int32(tries), 793_471).expected(jnp.asarray(ids))
    formula = -np.expm1(tries * np.log1p(-probabilities(793_471)[ids]))
    np.testing.assert_allclose(ours, formula, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(probability(jnp.arange(1000), 1000)).sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("words", [3, 1000, 793_471])
def test_single_draws_have_the_right_probability(words):
    drawn = np.asarray(jax.jit(lambda key: log_uniform(key, 200_000, words))(jax.random.key(3)))
    assert drawn.min() == 0 and drawn.max() < words
    edges = np.unique(np.geomspace(1, words + 1, 30).astype(int))
    observed = np.histogram(drawn + 1, edges)[0]
    expected = len(drawn) * np.log(edges[1:] / edges[:-1]) / np.log(words + 1)
    assert scipy.stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.long
def test_adjacent_rare_words_are_equally_likely():
    """With a float32 logarithm, some of these words would never be drawn, and others twice as often."""
    words = 800_000
    draw = jax.jit(lambda key: log_uniform(key, 2_000_000, words))
    drawn = np.concatenate([np.asarray(draw(jax.random.key(seed))) for seed in range(3)])
    tail = drawn[drawn >= 600_000]
    # All remainders by 7 are equally likely, and word counts follow a Poisson distribution.
    assert scipy.stats.chisquare(np.bincount(tail % 7)).pvalue > 1e-3
    counts = np.bincount(tail - 600_000, minlength=200_000)
    mean = counts.mean()
    assert counts.var() == pytest.approx(mean, rel=0.03)
    assert (counts == 0).mean() == pytest.approx(np.exp(-mean), abs=0.005)


@pytest.mark.parametrize("count, words", [(1, 2), (999, 1000), (500, 50_000)])
def test_draws_the_requested_number_of_distinct_words(count, words):
    draw = jax.jit(lambda key: (draw := draw_negatives(key, count, words), draw.expected(draw.ids)))
    for seed in range(5):
        negatives, expected = draw(jax.random.key(seed))
        assert len(np.unique(negatives.ids)) == count <= int(negatives.tries)
        assert 0 <= np.min(negatives.ids) <= np.max(negatives.ids) < words
        assert negatives.ids.dtype == negatives.tries.dtype == jnp.int32
        assert (np.asarray(expected) > 0).all()


def test_enough_draws():
    for count, words in ((64, 1000), (8192, 200_000)):
        draws = enough_draws(count, words)
        draw = jax.jit(lambda key, draws=draws, words=words: log_uniform(key, draws, words))
        different = [len(np.unique(draw(jax.random.key(seed)))) for seed in range(5)]
        assert min(different) >= count and draws < words
    assert 8192 < enough_draws(8192, 793_471) < 20_000 and enough_draws(900, 1000) == 1000


def test_same_key_draws_the_same_with_and_without_jit():
    eager = draw_negatives(jax.random.key(5), 20, 100)
    compiled = jax.jit(lambda key: draw_negatives(key, 20, 100))(jax.random.key(5))
    np.testing.assert_array_equal(eager.ids, compiled.ids)
    assert eager.tries == compiled.tries


@pytest.mark.long
def test_other_generators_work():
    for count in (20, 95):
        negatives = jax.jit(lambda key, n=count: draw_negatives(key, n, 100))(jax.random.key(5, impl="rbg"))
        assert len(np.unique(negatives.ids)) == count <= int(negatives.tries)


def test_too_many_negatives_raise():
    for count, words in ((8192, 8192), (10, 5), (0, 5), (-1, 5)):
        with pytest.raises(ValueError, match=rf"{count} different negatives.*{words} words.*full_softmax"):
            draw_negatives(jax.random.key(0), count, words)
