"""Readers of a part of a sentence, against sums over shapes, topics and heroes, and over all sequences."""

import functools
import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from bert_elmo_jax.toyworld import READERS, VIEWS, ToyWorld, View, best_reader, best_senses, exact_ceiling, list_places
from bert_elmo_jax.toyworld.automaton import Automaton, offsets
from bert_elmo_jax.toyworld.exact_ceilings import sum_views
from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import LANGUAGES, topic_weights, word_form, zipf
from bert_elmo_jax.toyworld.readers import label_names, label_posteriors, open_words, word_label_table
from bert_elmo_jax.toyworld.shapes import body_shapes, opening_shapes

SMALL = ToyWorld("en", topics=3, words=2, sentences=4)
BORDER = ""


@functools.cache
def slot_words(world, token, topic, hero):
    """Return {(word, sense): probability} of a token, from the lexicon alone."""
    if isinstance(token, str):
        return {(token, "O"): 1.0}
    words = Counter()
    entries = lexicon(world.topics, world.words).entries(token.list, topic, hero)
    for entry, p in zip(entries, zipf(len(entries))):
        words[word_form(world.language, token, entry, hero), LANGUAGES[world.language].sense(entry)] += p
    return words


@functools.cache
def windows(world, size):
    """Return the weights of `size` tokens on either side of each token, with borders; slots without their names."""
    weights = Counter()
    bodies = world.sentences - 1
    for share, shapes in ((1, opening_shapes()), (bodies, body_shapes())):
        for weight, shape in shapes:
            tokens = [t if isinstance(t, str) else t._replace(name="") for t in LANGUAGES[world.language].render(shape)]
            padded = [BORDER] * size + tokens + [BORDER] * size
            for n in range(len(tokens)):
                weights[tuple(padded[n : n + 2 * size + 1])] += float(weight) * share / world.sentences
    return weights


def sum_windows(world, size, task):
    """Return {window of words: {label: probability}} by enumeration of shapes, topics, heroes and words."""
    views = defaultdict(Counter)
    for topic, prior in enumerate(topic_weights(world.topics)):
        for hero in range(len(HEROES)):
            for tokens, weight in windows(world, size).items():
                for words in itertools.product(*(slot_words(world, t, topic, hero).items() for t in tokens)):
                    label = words[size][0][1] if task == "senses" else world.topic_names[topic]
                    p = float(np.prod([p for _, p in words])) * weight * prior / len(HEROES)
                    views[tuple(word for (word, _), _ in words)][label] += p
    return views


@pytest.mark.parametrize(
    ("task", "size"), [("senses", 0), ("senses", 1), ("topics", 0), pytest.param("topics", 1, marks=pytest.mark.long)]
)
def test_windows_are_those_of_an_enumeration_of_shapes(task, size):
    views = sum_windows(SMALL, size, task)
    is_open = dict(zip(SMALL.network.words, open_words(SMALL, task)))
    scored = {words: labels for words, labels in views.items() if is_open[words[size]]}
    best = sum(max(labels.values()) for labels in scored.values()) / sum(sum(p.values()) for p in scored.values())
    assert exact_ceiling(SMALL, task, View(size, size)) == pytest.approx(best)
    places = list_places(SMALL, task, [SMALL.document(i) for i in range(20)])
    names = label_names(SMALL, task)
    for place, posterior in zip(places, label_posteriors(SMALL, task, places, View(size, size))):
        padded = [BORDER] * size + list(place.sentence.words) + [BORDER] * size
        labels = scored[tuple(padded[place.number : place.number + 2 * size + 1])]
        expected = [labels[name] / sum(labels.values()) for name in names]
        np.testing.assert_allclose(posterior, expected, atol=1e-9)


def random_chain(seed):
    """Return an automaton of five states in a row of three words, and every sequence with its path."""
    rng = np.random.default_rng(seed)
    states, words = 5, 3
    arcs = [(s, t) for s in range(states) for t in range(s + 1, states)]
    weights = rng.random(len(arcs)) * (rng.random(len(arcs)) < 0.8)
    totals = np.bincount([s for s, _ in arcs], weights, states)
    # A state either ends or continues: readers know whether a sentence can end here.
    end = (totals == 0).astype(float)
    weights = weights / np.where(totals > 0, totals, 1)[[s for s, _ in arcs]]
    emissions = rng.dirichlet(np.ones(words), states)
    start = rng.dirichlet(np.ones(states))
    chain = Automaton(
        start, offsets(np.bincount([s for s, _ in arcs], minlength=states)), np.array([t for _, t in arcs]), weights,
        end, np.arange(states), offsets(np.full(states, words)), np.tile(np.arange(words), states),
        emissions.ravel(), words,
    )  # fmt: skip
    step = np.zeros((states, states))
    for (s, t), weight in zip(arcs, weights):
        step[s, t] = weight
    sequences = []
    for length in range(1, states + 1):
        for path in itertools.combinations(range(states), length):
            p = start[path[0]] * np.prod([step[pair] for pair in itertools.pairwise(path)]) * end[path[-1]]
            if p > 0:
                for text in itertools.product(range(words), repeat=length):
                    sequences.append((float(p * np.prod([emissions[s, w] for s, w in zip(path, text)])), path, text))
    visits = np.linalg.solve(np.eye(states) - step.T, start)
    return chain, visits, sequences


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("view", [*VIEWS.values(), View(None, 1), View(2, None)])
def test_every_view_of_a_small_chain_is_that_of_all_sequences(view, hidden):
    for seed in range(3):
        chain, visits, sequences = random_chain(seed)
        views = defaultdict(Counter)
        for p, path, text in sequences:
            for n, state in enumerate(path):
                before = n + 1 if view.left is None else view.left
                after = len(text) if view.right is None else view.right
                shown = [*text[:n], None if hidden else text[n], *text[n + 1 :]]
                left = tuple(shown[max(0, n - before) : n]), n < before
                right = tuple(shown[n + 1 : n + 1 + after]), n + after >= len(text)
                views[left, shown[n], right][state % 2] += p
        best = sum(max(labels.values()) for labels in views.values())
        total = sum(sum(labels.values()) for labels in views.values())
        ceiling = sum_views(chain, visits, lambda states, _: states % 2, np.ones(3, bool), view, hidden=hidden)
        assert ceiling == pytest.approx(best / total)


@pytest.mark.long
@pytest.mark.parametrize("task", ["senses", "topics"])
def test_a_large_sample_agrees_with_the_exact_ceiling(task):
    world = ToyWorld("ko", topics=4, words=4)
    places = list_places(world, task, [world.document(i) for i in range(40)])
    for reader, view in VIEWS.items():
        best, exact = best_reader(world, task, places, reader), exact_ceiling(world, task, view)
        # Words of one document are not independent: twice the error of independent ones, and three of those.
        assert best.expected == pytest.approx(exact, abs=6 * 0.5 / best.count**0.5), reader


def test_readers_who_see_more_are_better_and_the_last_is_the_reader_of_sentences():
    world = ToyWorld("en", topics=4, words=4)
    documents = [world.document(i) for i in range(60)]
    places = list_places(world, "senses", documents)
    scores = {reader: best_reader(world, "senses", places, reader).expected for reader in READERS}
    assert scores["word"] < scores["window 1"] < scores["window 2"] < scores["left"] < scores["all"]
    assert scores["right"] < scores["separate"] <= scores["all"] + 1e-12
    is_open = dict(zip(world.network.words, open_words(world, "senses")))
    sentences = [s for d in documents for s in d.sentences if any(is_open[word] for word in s.words)]
    # `best_senses` also scores words with a single sense, which no reader gets wrong.
    every = best_senses(world, sentences)
    best = best_reader(world, "senses", places, "all")
    assert best.count - best.accuracy * best.count == pytest.approx(every.count - every.accuracy * every.count)


def test_a_hidden_word_has_the_frequencies_of_words_as_its_table():
    table = word_label_table(SMALL, "words")
    assert exact_ceiling(SMALL, "words", View(0, 0)) == pytest.approx(table.sum(0).max())


def test_wrong_readers_and_tasks_without_open_words_are_refused():
    with pytest.raises(ValueError, match="expected a View or one of word, window 1"):
        best_reader(SMALL, "senses", [], "middle")
    with pytest.raises(ValueError, match="no word of this world has several labels of the task speech"):
        exact_ceiling(SMALL, "speech", View(0, 0))
