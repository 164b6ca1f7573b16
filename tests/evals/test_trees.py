"""Attachment scores against values by hand, by the rules of the CoNLL 2018 shared task."""

import pytest

from bert_elmo_jax.evals import trees


def test_subtypes_do_not_count_and_punctuation_does():
    right = [((2, 0, 2, 2), ("nsubj:pass", "root", "obl:tmod", "punct")), ((0,), ("root",))]
    predicted = [((2, 0, 2, 1), ("nsubj", "root", "obj", "punct")), ((0,), ("root",))]
    assert trees.score(right, predicted) == {"las": 3 / 5, "uas": 4 / 5, "las_subtypes": 2 / 5}


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="trees of 2 and 1 words; expected the same words"):
        trees.score([((2, 0), ("a", "b"))], [((0,), ("a",))])
    with pytest.raises(ValueError, match="a tree has 2 heads but 1 relations: give both"):
        trees.score([((2, 0), ("a", "b"))], [((2, 0), ("a",))])
    with pytest.raises(ValueError, match="2 right trees but 1 predicted: give the same sentences"):
        trees.score([((2, 0), ("a", "b")), ((0,), ("a",))], [((2, 0), ("a", "b"))])
    with pytest.raises(ValueError, match="no words to score"):
        trees.score([], [])
