"""Examples of `bert_elmo_jax.analysis.heads_and_arcs`."""

from bert_elmo_jax.analysis.heads_and_arcs import heads_and_arcs, list_arcs
from bert_elmo_jax.data.tasks.annotated import ParsedSentence


def test_example_of_heads_and_arcs():
    from bert_elmo_jax import load

    words, none = ("w1", "w2", "w3"), ({}, {}, {})
    sentence = ParsedSentence(words, ("DET", "NOUN", "VERB"), none, (2, 3, 0), ("det", "nsubj", "root"), "a", (1,))
    assert (
        repr(heads_and_arcs(load("tests/goldens/bert_tiny"), [sentence] * 20, "tiny")[0][0])
        == "attention: det, offset +1: 100.0 %"
    )


def test_example_of_list_arcs():
    sentence = ParsedSentence(("내", "배"), ("PRON", "NOUN"), ({}, {}), (2, 0), ("nmod:poss", "root"), "a", (1, 2))
    assert list_arcs(sentence) == [(0, 1, ("nmod", "any, of a pronoun"))]
