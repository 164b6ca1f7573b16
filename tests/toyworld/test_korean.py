"""Korean forms of words, and the words of sentences; stems are tested in `test_grammar.py`."""

from bert_elmo_jax.toyworld.korean import inflect, render
from bert_elmo_jax.toyworld.lexicon import entry
from bert_elmo_jax.toyworld.shapes import Shape


def test_forms_and_words_of_a_sentence():
    mend = entry("mend=고치다")
    assert (inflect(mend, "past"), inflect(mend, "past+honorific")) == ("고쳤다", "고치셨다")
    tokens = render(Shape("do", place=True))
    shown = [token if isinstance(token, str) else token.name for token in tokens]
    assert shown == ["hero", "place", "thing", "verb", "."]
