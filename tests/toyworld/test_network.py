"""The network of words: weights, forms, entries, and the shapes of sentences."""

from bert_elmo_jax.toyworld.lexicon import HEROES, entry, lexicon
from bert_elmo_jax.toyworld.network import build, topic_weights, word_form, zipf
from bert_elmo_jax.toyworld.shapes import Shape, Slot, opening_shapes, slots


def test_weights():
    assert [round(p, 3) for p in zipf(3)] == [0.545, 0.273, 0.182]
    assert [round(p, 2) for p in topic_weights(4)] == [0.27, 0.26, 0.24, 0.23]


def test_entries_and_words():
    assert (entry("pear=배#pear").korean, entry("pear=배#pear").sense_korean) == ("배", "pear")
    assert [hero.korean for hero in HEROES if hero.honorific] == ["할머니", "할아버지", "어머니", "아버지"]
    assert lexicon(topics=4, words=3).topics[3].lists["things0"][0].korean == "배"
    assert len(lexicon(topics=24, words=6).topics) == 24
    assert [e.english for e in lexicon(topics=2, words=2).entries("heroes", topic=0, hero=2)] == ["Grandmother"]
    assert word_form("ko", Slot("verb", "verbs0", "past+hero"), entry("mend=고치다"), hero=2) == "고치셨다"
    network = build("en", topics=2, words=2, sentences=4)
    assert "bank" in network.words and "bank.money" in network.senses


def test_shapes_and_slots():
    assert [shape.frame for _, shape in opening_shapes()] == ["opening"]
    assert Slot("thing", "things0", "many").name == "thing"
    assert slots(Shape("act", subject="one", place=True)) == (("agent", "people"), ("act", "acts"), ("place", "places"))
