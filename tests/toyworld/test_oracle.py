"""The ideal reader against an independent calculation over every shape, topic and hero, slot by slot."""

import functools
import re

import numpy as np
import pytest

from bert_elmo_jax.toyworld import (
    MASK,
    ToyWorld,
    best_next,
    fill_masks,
    mask_words,
    masked_posteriors,
    next_sentence_probabilities,
    sense_posteriors,
    topic_posteriors,
    word_log_probabilities,
)
from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import LANGUAGES, topic_weights, word_form, zipf
from bert_elmo_jax.toyworld.oracle import automaton, batches, encode, infer_texts
from bert_elmo_jax.toyworld.shapes import body_shapes, opening_shapes

LANGUAGE_NAMES = ["en", "ko"]
SHARE = len(HEROES)
OPENING, BODY = tuple(opening_shapes()), tuple(body_shapes())


def small(language):
    return ToyWorld(language, topics=2, words=2, sentences=4)


@functools.cache
def slot_words(world, token, topic, hero):
    """Return {word: (probability, tag)} of one token, from the lexicon alone."""
    if isinstance(token, str):
        return {token: (1.0, "O")}
    table = {}
    choices = lexicon(world.topics, world.words).entries(token.list, topic, hero)
    for choice, p in zip(choices, zipf(len(choices))):
        word = word_form(world.language, token, choice, hero)
        tag = LANGUAGES[world.language].sense(choice)
        table[word] = (table.get(word, (0.0, tag))[0] + p, tag)
    return table


@functools.cache
def orders(language, shapes, length):
    rendered = [(float(weight), LANGUAGES[language].render(shape)) for weight, shape in shapes]
    return [(weight, order) for weight, order in rendered if len(order) == length]


def readings(world, words, shapes, topic, hero):
    """Yield (probability, distribution of each token) for every shape that matches the words (MASK: any word)."""
    for weight, order in orders(world.language, shapes, len(words)):
        tables = [slot_words(world, token, topic, hero) for token in order]
        p = weight
        for word, table in zip(words, tables):
            p *= 1.0 if word == MASK else table.get(word, (0.0, ""))[0]
        if p:
            yield p, tables


def blocks(world):
    for topic, weight in enumerate(topic_weights(world.topics)):
        for hero in range(SHARE):
            yield weight / SHARE, topic, hero


@functools.cache
def probability_of(world, sentence, shapes, topic, hero):
    return sum(p for p, _ in readings(world, sentence.split(), shapes, topic, hero))


@pytest.fixture(scope="module", params=LANGUAGE_NAMES)
def world(request):
    return small(request.param)


@pytest.fixture(scope="module")
def documents(world):
    return [d for d in (world.document(i) for i in range(40)) if 3 <= len(d.sentences) <= 5][:3]


def test_probability_of_a_sentence(world, documents):
    opening_share = 1 / world.sentences
    for sentence in (s for d in documents for s in d.sentences):
        expected = sum(
            prior
            * (
                opening_share * probability_of(world, sentence.text, OPENING, topic, hero)
                + (1 - opening_share) * probability_of(world, sentence.text, BODY, topic, hero)
            )
            for prior, topic, hero in blocks(world)
        )
        [forward] = word_log_probabilities(world, [sentence.text])
        [backward] = word_log_probabilities(world, [sentence.text], direction="backward")
        np.testing.assert_allclose(np.exp(forward.sum()), expected, rtol=1e-9)
        np.testing.assert_allclose(np.exp(backward.sum()), expected, rtol=1e-9)


def test_probability_of_a_document(world, documents):
    stop = 1 / (world.sentences - 1)
    for document in documents:
        first, *body_texts = [sentence.text for sentence in document.sentences]
        expected = sum(
            prior
            * probability_of(world, first, OPENING, topic, hero)
            * np.prod([probability_of(world, text, BODY, topic, hero) for text in body_texts])
            for prior, topic, hero in blocks(world)
        ) * (1 - stop) ** (len(body_texts) - 1)
        [forward] = word_log_probabilities(world, [document.text], "document")
        [backward] = word_log_probabilities(world, [document.text], "document", "backward")
        np.testing.assert_allclose(np.exp(forward[:-1].sum()), expected, rtol=1e-9)
        np.testing.assert_allclose(np.exp(forward[-1]), stop, rtol=1e-9)
        np.testing.assert_allclose(np.exp(backward.sum()), expected * stop, rtol=1e-9)


@pytest.mark.parametrize("masked", [[0], [1], [2], [1, 2], [0, 2, 3]])
def test_posterior_of_masked_words(world, documents, masked):
    opening_share = 1 / world.sentences
    for sentence in [document.sentences[k].text for document in documents for k in (0, 1)]:
        positions = [p for p in masked if p < len(sentence.split())]
        words = mask_words(sentence, positions).split()
        expected = np.zeros((len(positions), len(world.network.words)))
        for prior, topic, hero in blocks(world):
            for share, shapes in ((opening_share, OPENING), (1 - opening_share, BODY)):
                for p, tables in readings(world, words, shapes, topic, hero):
                    for row, position in enumerate(positions):
                        for word, (q, _) in tables[position].items():
                            expected[row, world.network.words.index(word)] += prior * share * p * q
        expected /= expected.sum(1, keepdims=True)
        [posteriors] = masked_posteriors(world, [" ".join(words)])
        np.testing.assert_allclose(posteriors, expected, atol=1e-9)


def test_senses_and_topics_given_a_sentence(world, documents):
    opening_share = 1 / world.sentences
    for sentence in [document.sentences[1].text for document in documents]:
        words = sentence.split()
        senses = np.zeros((len(words), len(world.network.senses)))
        topics = np.zeros(world.topics)
        for prior, topic, hero in blocks(world):
            for share, shapes in ((opening_share, OPENING), (1 - opening_share, BODY)):
                for p, tables in readings(world, words, shapes, topic, hero):
                    topics[topic] += prior * share * p
                    for position, word in enumerate(words):
                        tag = tables[position][word][1]
                        senses[position, world.network.senses.index(tag)] += prior * share * p
        [posteriors] = sense_posteriors(world, [sentence])
        np.testing.assert_allclose(posteriors, senses / senses.sum(1, keepdims=True), atol=1e-9)
        np.testing.assert_allclose(topic_posteriors(world, [sentence])[0], topics / topics.sum(), atol=1e-9)


def passage_mass(world, texts, follow):
    """Yield the unnormalised joint probability of consecutive sentences and each block, with `follow` more to come."""
    stop = 1 / (world.sentences - 1)
    for prior, topic, hero in blocks(world):
        body = [probability_of(world, text, BODY, topic, hero) for text in texts]
        opening = probability_of(world, texts[0], OPENING, topic, hero)
        # A document has one opening and 1 / stop other sentences; each of them has a successor with P = 1 - stop.
        steps = len(texts) - 1 + follow
        later = float(np.prod(body[1:]))
        yield prior * (opening * later * (1 - stop) ** max(steps - 1, 0) + body[0] * later * (1 - stop) ** steps / stop)


@pytest.mark.parametrize("length", [1, 2])
def test_next_sentence(world, documents, length):
    """Both cases are conditioned on the existence of passages of these lengths."""
    stop = 1 / (world.sentences - 1)

    def count(sentences):
        """Return the expected number of passages of this length per document."""
        return 1 / stop + 1 if sentences == 1 else (1 - stop) ** (sentences - 2) / stop

    def expected(a, b):
        together = sum(passage_mass(world, [a, *b], follow=0)) / count(1 + length)
        apart = sum(passage_mass(world, [a], follow=1)) / count(2) * sum(passage_mass(world, b, 0)) / count(length)
        return together / (together + apart)

    stories = [[s.text for s in d.sentences] for d in documents]
    runs = [(texts[k], texts[k + 1 : k + 1 + length]) for texts in stories for k in range(len(texts) - length)]
    runs += [(a[0], b[1 : 1 + length]) for a in stories for b in stories if a is not b]
    right = [expected(a, b) for a, b in runs]
    probabilities = next_sentence_probabilities(world, [(a, " ".join(b)) for a, b in runs])
    np.testing.assert_allclose(probabilities, right, atol=1e-9)
    # The sample must contain enough uncertain cases.
    assert sum(0.01 < p < 0.99 for p in right) > 5


@pytest.mark.parametrize("reading", ["sentence", "document"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_automata_are_proper_chains(world, reading, direction):
    """The outgoing probabilities of a state sum to one, also reversed: a product of wrong ones could still be right."""
    chain = automaton(world, reading, direction)
    assert chain.start.sum() == pytest.approx(1)
    sources = np.repeat(np.arange(len(chain.end)), np.diff(chain.arc_offsets))
    leaving = np.bincount(sources, chain.arc_weights, minlength=len(chain.end))
    np.testing.assert_allclose(leaving + chain.end, 1.0, atol=1e-9)


def test_masked_pair_mixes_both_readings(world, documents):
    a, b = (sentence.text for sentence in documents[0].sentences[:2])
    hidden = mask_words(a, [2]), mask_words(b, [0, 1])
    [p] = next_sentence_probabilities(world, [hidden])
    [pair] = masked_posteriors(world, [hidden])
    [joint] = masked_posteriors(world, [" ".join(hidden)])
    [second] = masked_posteriors(world, [hidden[1]])
    assert 0 < p < 1
    np.testing.assert_allclose(pair[1:], p * joint[1:] + (1 - p) * second, atol=1e-9)
    np.testing.assert_allclose(pair.sum(1), 1.0)


def test_pairs_that_cannot_be_consecutive_are_read_separately():
    world = ToyWorld("en")
    a, b = "The captain pulls the net .", "One night Mina was in the quiet garden ."
    assert next_sentence_probabilities(world, [(a, b)]) == 0
    [pair] = masked_posteriors(world, [(a, mask_words(b, [7]))])
    [single] = masked_posteriors(world, [mask_words(b, [7])])
    np.testing.assert_allclose(pair, single)


def test_documents_of_two_sentences():
    """With the minimum mean length, nothing follows a second sentence."""
    world = ToyWorld("en", topics=3, sentences=2)
    first, second = (sentence.text for sentence in world.document(0).sentences)
    assert next_sentence_probabilities(world, [(first, second)]) > 0.5
    assert {len(world.document(i).sentences) for i in range(20)} == {2}
    with pytest.raises(ValueError, match="cannot occur"):
        next_sentence_probabilities(world, [(first, f"{second} {second}")])


FOREIGN = [  # a text, and the message
    ("The net is xyzzy .", "xyzzy"),
    ("", "empty text"),
    ("  \n ", "empty text"),
    ("The net", "the end cannot occur"),
    (". .", r"'.' \(word 1\)"),
    ("The sailors pulls the net .", "'pulls'"),
    ("그물은 크다 .", "not words of this toy world"),
    ("The [mask] is big .", r"\[mask\]"),
]


def test_invalid_texts_and_masks_are_refused():
    world = ToyWorld("en")
    for text, message in FOREIGN:
        for read in (fill_masks, lambda world, text: word_log_probabilities(world, [text])):
            with pytest.raises(ValueError, match=message):
                read(world, text)
    for read in (word_log_probabilities, sense_posteriors):
        with pytest.raises(ValueError, match="give a text without masks"):
            read(world, ["The [MASK] is big ."])
    with pytest.raises(ValueError, match="cannot mask word 3 of a text of 2 words"):
        mask_words("a .", [3])
    with pytest.raises(ValueError, match="sample is empty"):
        best_next(world, [], [])
    with pytest.raises(ValueError, match='direction="backward" needs'):
        word_log_probabilities(world, ["The net is big ."], "passage", "backward")
    assert fill_masks(world, "The captain pulls the net .") == []
    message = re.escape("not a text of this toy world: '.' (word 1) cannot occur there in '. .'")
    with pytest.raises(ValueError, match=message):
        infer_texts(automaton(world, "sentence"), [". ."], [encode(world, ". .")])
    assert list(batches(["a b", "a"])) == [[1, 0]]
