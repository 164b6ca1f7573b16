"""Examples of `bert_elmo_jax.toyworld.network`."""

from bert_elmo_jax.toyworld.network import build, topic_weights, word_form, zipf
from bert_elmo_jax.toyworld.shapes import Slot


def test_example_of_zipf():
    assert [round(p, 3) for p in zipf(3)] == [0.545, 0.273, 0.182]


def test_example_of_topic_weights():
    assert [round(p, 2) for p in topic_weights(4)] == [0.27, 0.26, 0.24, 0.23]


def test_example_of_word_form():
    from bert_elmo_jax.toyworld.lexicon import entry

    assert word_form("ko", Slot("verb", "verbs0", "past+hero"), entry("mend=고치다"), hero=2) == "고치셨다"


def test_example_of_entries():
    from bert_elmo_jax.toyworld.lexicon import lexicon

    assert [e.english for e in lexicon(topics=2, words=2).entries("heroes", topic=0, hero=2)] == ["Grandmother"]


def test_example_of_build():
    network = build("en", topics=2, words=2, sentences=4)
    assert ("bank" in network.words, "bank.money" in network.senses) == (True, True)
