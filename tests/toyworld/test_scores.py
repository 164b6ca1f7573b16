"""Scores of the ideal reader: senses and agreement from context, calibration, documented accuracies."""

import numpy as np
import pytest

from bert_elmo_jax.toyworld import (
    ToyWorld,
    best_masked,
    best_next,
    best_senses,
    best_topics,
    fill_masks,
    next_examples,
    perplexity,
    sense_posteriors,
    sense_priors,
)

LANGUAGE_NAMES = ["en", "ko"]


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_context_decides_the_sense(language):
    """A word alone leaves its sense open; its sentence nearly determines it, its document entirely."""
    world = ToyWorld(language)
    words = ("bank", "bat", "crane") if language == "en" else ("배를", "눈은", "말을")
    for word in words:
        assert max(sense_priors(world, word).values()) < 0.7
        assert sum(sense_priors(world, word).values()) == pytest.approx(1)
    documents = [world.document(i) for i in range(300)]
    in_sentence = best_senses(world, [s for d in documents for s in d.sentences])
    assert in_sentence.accuracy > 0.95
    documents_senses = sense_posteriors(world, [d.text for d in documents])
    tags = [[tag for s in d.sentences for tag in s.tags] for d in documents]
    hits = [
        world.network.senses[posterior.argmax()] == tag
        for rows, document_tags in zip(documents_senses, tags)
        for posterior, tag in zip(rows, document_tags, strict=True)
        if tag != "O"
    ]
    assert np.mean(hits) > 0.99


SENSE_EXAMPLES = {  # a sentence, the position of a word, and its sense
    "en": [
        ("The bankers close the bank .", 4, "bank.money"),
        ("The angler photographs the bank .", 4, "bank.riverside"),
        ("The umpire threw the bat .", 4, "bat.club"),
        ("The hunters fear the bat .", 4, "bat.animal"),
    ],
    "ko": [
        ("선원은 항구에서 배를 당겼다 .", 2, "배.ship"),
        ("농부는 배를 깎았다 .", 1, "배.pear"),
        ("의사는 배를 진찰했다 .", 1, "배.belly"),
        ("목동은 말을 먹인다 .", 1, "말.horse"),
        ("판사는 말을 듣는다 .", 1, "말.speech"),
    ],
}


def test_known_sentences():
    for language, rows in SENSE_EXAMPLES.items():
        world = ToyWorld(language)
        for posterior, (_, position, sense) in zip(sense_posteriors(world, [text for text, _, _ in rows]), rows):
            assert posterior[position, world.network.senses.index(sense)] > 0.95


def test_agreement_is_known_across_the_gap():
    world = ToyWorld("en")
    [one] = fill_masks(world, "The sailor near the old trees [MASK] the net .", top=40)
    [many] = fill_masks(world, "The sailors near the old tree [MASK] the net .", top=40)
    assert {word for word, p in one if p > 0} & {"pulls", "pull"} == {"pulls"}
    assert {word for word, p in many if p > 0} & {"pulls", "pull"} == {"pull"}
    korean = ToyWorld("ko")
    [elder] = fill_masks(korean, "할머니께서는 선원이 그물을 당겼다고 [MASK] .")
    assert [word for word, p in elder if p > 1e-9] == ["말씀하셨다", "말씀하신다"]


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_scores_are_calibrated_and_as_documented(language):
    """The expected accuracy matches the measured one within sampling error, and is high enough for the tasks."""
    world = ToyWorld(language, seed=1)
    documents = [world.document(i) for i in range(120)]
    texts = [document.text for document in documents]
    sentences = [sentence for document in documents for sentence in document.sentences]
    positions = [list(range(i % 7, len(text.split()), 7)) for i, text in enumerate(texts)]
    pairs = [pair for pair, _ in zip(next_examples(world, "dev"), range(700))]
    scores = {
        "masked": best_masked(world, texts, positions),
        "senses": best_senses(world, sentences),
        "topics": best_topics(world, [s.text for s in sentences], [d.topic for d in documents for _ in d.sentences]),
        "next": best_next(world, [(a, b) for a, b, _ in pairs], [label for _, _, label in pairs]),
    }
    for name, best in scores.items():
        error = np.sqrt(best.expected * (1 - best.expected) / best.count)
        assert abs(best.accuracy - best.expected) < 4 * error, (name, best)
    assert scores["next"].expected > 0.97
    assert scores["topics"].expected > 0.97
    forward, backward = (perplexity(world, [s.text for s in sentences], direction=d) for d in ("forward", "backward"))
    # The texts have the same probability in both directions.
    assert forward == pytest.approx(backward)
    assert perplexity(world, texts, "document") < forward
