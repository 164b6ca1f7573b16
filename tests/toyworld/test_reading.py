"""Examples of `bert_elmo_jax.toyworld.oracle`."""

import re

import pytest

from bert_elmo_jax.toyworld.oracle import automaton, batches, encode, infer_texts
from bert_elmo_jax.toyworld.world import ToyWorld


def test_example_of_infer_texts():
    world = ToyWorld(topics=2, words=2)
    with pytest.raises(
        ValueError, match=re.escape("not a text of this toy world: '.' (word 1) cannot occur there in '. .'")
    ):
        infer_texts(automaton(world, "sentence"), [". ."], [encode(world, ". .")])


def test_example_of_automaton():
    assert repr(automaton(ToyWorld(topics=2, words=2), "sentence").end.max()) == "np.float64(1.0)"


def test_example_of_batches():
    assert list(batches(["a b", "a"])) == [[1, 0]]
