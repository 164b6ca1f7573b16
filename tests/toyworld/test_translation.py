"""Every right translation of a sentence, against all meanings of a small world spelled out."""

from collections import defaultdict
from itertools import islice, product

import pytest

from bert_elmo_jax.toyworld import ToyWorld, distinct_pairs, right_translations, sentence_pairs, translations
from bert_elmo_jax.toyworld.lexicon import HEROES, lexicon
from bert_elmo_jax.toyworld.network import topic_weights, zipf
from bert_elmo_jax.toyworld.shapes import body_shapes, slots

SIZE = {"topics": 2, "words": 2}


@pytest.fixture(scope="module")
def spelled_out():
    """Say every meaning of two frames in both languages: {language: {sentence: {translation: probability}}}."""
    worlds = {language: ToyWorld(language, **SIZE) for language in ("en", "ko")}
    probabilities = {language: defaultdict(lambda: defaultdict(float)) for language in worlds}
    entries = lexicon(**SIZE).entries
    for weight, shape in body_shapes():
        if shape.frame not in ("say", "compare") or shape.tense == "present":
            continue
        for topic, hero in product(range(2), range(len(HEROES))):
            lists = [zipf(len(entries(name, topic))) for _, name in slots(shape)]
            for choices in product(*(range(len(chances)) for chances in lists)):
                share = float(weight) * topic_weights(2)[topic]
                for chances, choice in zip(lists, choices):
                    share *= chances[choice]
                english, korean = (world.say(topic, hero, shape, choices).text for world in worlds.values())
                probabilities["en"][english][korean] += share
                probabilities["ko"][korean][english] += share
    return probabilities


@pytest.mark.parametrize("language", ["en", "ko"])
def test_translations_are_all_meanings(spelled_out, language):
    world = ToyWorld(language, **SIZE)
    sentences = sorted(spelled_out[language])
    for text in sentences[:: max(1, len(sentences) // 150)]:
        expected = spelled_out[language][text]
        total = sum(expected.values())
        shares = translations(world, text)
        assert shares == pytest.approx({target: share / total for target, share in expected.items()}, abs=1e-9)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)


@pytest.mark.parametrize("size", [SIZE, {"topics": 8}])
def test_the_pairs_of_the_world_are_translations(size):
    english, korean = ToyWorld("en", **size), ToyWorld("ko", **size)
    for first, second in islice(sentence_pairs(english, "dev"), 40):
        assert second in translations(english, first)
        assert first in translations(korean, second)


def test_pronouns_and_numbers_are_ambiguous():
    korean = set(translations(ToyWorld("en"), "She peeled the pear ."))
    assert korean == {"그녀는 배를 깎았다 .", "그분께서는 배를 깎으셨다 ."}
    english = set(translations(ToyWorld("ko"), "그분께서는 배를 깎으셨다 ."))
    assert english == {f"{who} peeled the {fruit} ." for who in ("She", "He") for fruit in ("pear", "pears")}


def test_distinct_pairs_keep_their_order():
    world, pairs = ToyWorld(**SIZE), []
    for pair in islice(sentence_pairs(world, "corpus"), 300):
        if not any(set(pair) & set(other) for other in pairs):
            pairs.append(pair)
    assert pairs == list(islice(distinct_pairs(world, "corpus"), len(pairs)))
    assert len(pairs) < 300


def test_right_translations_and_wrong_inputs():
    world = ToyWorld("en")
    right = "그분께서는 배를 깎으셨다 ."
    mixed = "그녀는 배를 깎으셨다 ."  # no meaning agrees with itself in this way
    assert right_translations(world, ["She peeled the pear ."] * 4, [right, mixed, "", right + " ."]) == 0.25
    with pytest.raises(ValueError, match=r"'She ate a pear \.' is not a sentence of this world"):
        translations(world, "She ate a pear .")
    with pytest.raises(ValueError, match="1 sources and 0 translations: give one translation per source"):
        right_translations(world, ["She peeled the pear ."], [])
