"""Documents: reproducible, random access, distributed as in the automaton, the same story in both languages."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from bert_elmo_jax.toyworld import SPLITS, ToyWorld
from bert_elmo_jax.toyworld.automaton import infer
from bert_elmo_jax.toyworld.lexicon import HEROES
from bert_elmo_jax.toyworld.network import topic_weights
from bert_elmo_jax.toyworld.oracle import automaton, encode

LANGUAGE_NAMES = ["en", "ko"]
NUMBERS = (3, 1, 2**32 - 1)
SCRIPT = f"""
import hashlib
from bert_elmo_jax.toyworld import ToyWorld
text = "".join(ToyWorld(language, seed=7).document(i).text for language in ("en", "ko") for i in {NUMBERS})
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_other_processes_write_the_same_bytes():
    texts = {  # in another order than the script's
        (language, i): ToyWorld(language, seed=7).document(i).text
        for language in "ko en".split()
        for i in NUMBERS[::-1]
    }
    expected = hashlib.sha256("".join(texts[key] for key in product(("en", "ko"), NUMBERS)).encode()).hexdigest()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = [sys.executable, "-c", SCRIPT]
        assert (
            subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout.strip() == expected
        )


def test_the_text_itself_is_frozen():
    """Published scores depend on these bytes: change them only on purpose."""
    assert ToyWorld("en").document(2).text.split("\n")[:3] == [
        "One night Jimin was at the quiet office .",
        "The bankers close the company .",
        "Jimin argues at the counter .",
    ]
    assert ToyWorld("ko").document(2).text.split("\n")[:3] == [
        "어느 밤 지민은 조용한 사무실에 있었다 .",
        "은행원들은 회사를 닫는다 .",
        "지민은 창구에서 다툰다 .",
    ]


def test_seeds_and_documents_differ():
    texts = {ToyWorld("en", seed=seed).document(i).text for seed in range(5) for i in range(20)}
    assert len(texts) == 100


def test_languages_tell_one_story():
    for i in range(20):
        en, ko = ToyWorld("en").document(i), ToyWorld("ko").document(i)
        assert (en.topic, en.hero) == (ko.topic, ko.hero)
        assert [(s.shape, s.choices) for s in en.sentences] == [(s.shape, s.choices) for s in ko.sentences]


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_tags_belong_to_words_of_several_senses(language):
    world = ToyWorld(language)
    tagged = Counter()
    for i in range(200):
        for sentence in world.document(i).sentences:
            assert len(sentence.tags) == len(sentence.words)
            for word, tag in zip(sentence.words, sentence.tags):
                if tag != "O":
                    assert tag in world.network.senses
                    assert word.lower()[:1] == tag[0]
                    tagged[tag.split(".")[0]] += 1
    for word in ("bank", "bat", "spring") if language == "en" else ("배", "눈", "말"):
        assert tagged[word] > 5


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_frequencies_are_those_of_the_automaton(language):
    """First words of second sentences: a chi-square of a fixed sample against exact probabilities."""
    world, count = ToyWorld(language, topics=4, words=3), 3000
    network = world.network
    start = automaton(world, "document").start
    first_words = Counter(world.document(i).sentences[1].words[0] for i in range(count))
    # All openings have the same length; after an opening every automaton moves to a body sentence.
    exact = np.zeros(len(network.words))
    opening = world.document(0).sentences[0]
    assert start.sum() == pytest.approx(1)
    document = automaton(world, "document")
    finals = np.flatnonzero(np.tile(network.part == 0, network.topics * len(HEROES)))
    prior = np.repeat(topic_weights(world.topics), len(HEROES)) / len(HEROES)
    for state, weight in zip(finals, prior, strict=True):
        for arc in range(document.arc_offsets[state], document.arc_offsets[state + 1]):
            row = document.rows[document.arc_targets[arc]]
            span = slice(document.emission_offsets[row], document.emission_offsets[row + 1])
            exact[document.emission_words[span]] += weight * document.arc_weights[arc] * document.emission_weights[span]
    assert exact.sum() == pytest.approx(1)
    common = [word for word, p in zip(network.words, exact) if p * count >= 5]
    expected = np.array([exact[network.words.index(word)] * count for word in common])
    observed = np.array([first_words[word] for word in common])
    tails = count - expected.sum(), count - observed.sum()
    chi_square = ((observed - expected) ** 2 / expected).sum() + (tails[1] - tails[0]) ** 2 / max(tails[0], 1)
    freedom = len(common)
    assert abs(chi_square - freedom) < 4 * np.sqrt(2 * freedom), (chi_square, freedom)
    assert set(first_words) <= {word for word, p in zip(network.words, exact) if p}
    assert np.isfinite(infer(automaton(world, "passage"), [encode(world, opening.text)]).log_likelihood).all()


def test_lengths_of_documents():
    lengths = np.array([len(ToyWorld("en", sentences=6).document(i).sentences) for i in range(2000)])
    assert lengths.min() == 2
    # One plus a geometric variable with mean five: its standard deviation is √20.
    assert abs(lengths.mean() - 6) < 4 * np.sqrt(20 / 2000)


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_vocabulary_is_zipfian_and_has_the_documented_size(language):
    world = ToyWorld(language)
    assert 1000 < len(world.network.words) < 3500
    counts = Counter(word for i in range(1500) for s in world.document(i).sentences for word in s.words)
    frequencies = np.array(sorted(counts.values(), reverse=True)[9:600], dtype=np.float64)
    slope = np.polyfit(np.log(np.arange(10, 10 + len(frequencies))), np.log(frequencies), 1)[0]
    assert -1.2 < slope < -0.8


def test_options_set_the_size_of_the_language():
    sizes = [len(ToyWorld("en", topics=t, words=w).network.words) for t, w in ((2, 2), (6, 3), (24, 3), (24, 6))]
    assert sizes == sorted(sizes)
    assert sizes[0] < 200


def test_invalid_worlds_and_documents_are_refused():
    for options, message in (
        ({"language": "fr"}, "language='fr': expected one of en, ko"),
        ({"seed": -1}, "seed=-1"),
        ({"topics": 1}, "from 2 to 24 topics"),
        ({"topics": 25}, "from 2 to 24 topics"),
        ({"words": 7}, "from 2 to 6 words"),
        ({"sentences": 1}, "sentences=1: expected a mean of 2 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            ToyWorld(**options)
    for number in (-1, 2**32):
        with pytest.raises(ValueError, match="numbered from 0"):
            ToyWorld().document(number)


def test_splits_do_not_overlap():
    starts = sorted(SPLITS.values())
    assert min(b - a for a, b in pairwise(starts)) >= 2**29
    assert starts[-1] + 2**29 < 2**32
