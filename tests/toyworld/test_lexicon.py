"""Examples of `bert_elmo_jax.toyworld.lexicon`."""

from bert_elmo_jax.toyworld.lexicon import HEROES, entry, lexicon


def test_example_of_entry():
    assert (entry("pear=배#pear").korean, entry("pear=배#pear").sense_korean) == ("배", "pear")


def test_example_of_hero():
    assert [hero.korean for hero in HEROES if hero.honorific] == ["할머니", "할아버지", "어머니", "아버지"]


def test_example_of_topic():
    assert lexicon(topics=4, words=3).topics[3].lists["things0"][0].korean == "배"


def test_example_of_lexicon():
    assert len(lexicon(topics=24, words=6).topics) == 24
