"""English forms of words, and the words of sentences."""

from bert_elmo_jax.toyworld.english import comparative, inflect, past, plural, render
from bert_elmo_jax.toyworld.lexicon import entry
from bert_elmo_jax.toyworld.shapes import Shape


def test_forms_of_words():
    plurals = {"net": "nets", "box": "boxes", "lily": "lilies", "day": "days", "branch": "branches"}
    pasts = {"pull": "pulled", "admire": "admired", "carry": "carried", "play": "played"}
    for function, forms in (
        (plural, plurals),
        (comparative, {"small": "smaller", "strange": "stranger", "pretty": "prettier"}),
        (past, pasts),
    ):
        assert {word: function(word) for word in forms} == forms
    assert [inflect(entry("catch/caught=잡다"), form) for form in ("past", "third")] == ["caught", "catches"]


def test_words_of_a_sentence():
    tokens = render(Shape("act", subject="many", place=True))
    shown = [token if isinstance(token, str) else token.form for token in tokens]
    assert shown == ["The", "many", "past", "plain", "the", "plain", "."]
