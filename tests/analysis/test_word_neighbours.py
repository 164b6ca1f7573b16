"""Examples of `bert_elmo_jax.analysis.word_neighbours`."""

import numpy as np

from bert_elmo_jax.analysis.word_neighbours import (
    Neighbour,
    Neighbourhood,
    describe_neighbours,
    find_static_neighbours,
    format_neighbours,
    list_neighbours,
)
from bert_elmo_jax.inference.word_layers import StaticVectors


def test_example_of_neighbour():
    assert repr(Neighbour((0, 1), ("큰", "배"), 0.93)) == "큰 [배] 0.930"


def test_example_of_neighbourhood():
    assert Neighbourhood("runs/elmo", 1, (Neighbour((0, 0), ("배",), 1.0),)).asked.word == "배"


def test_example_of_find_static_neighbours():
    table = {"play": np.array([1.0, 0.0]), "game": np.array([0.9, 0.1]), "river": np.array([0.0, 1.0])}
    assert find_static_neighbours(StaticVectors(table), "play", 1) == [("game", 0.994)]


def test_example_of_describe_neighbours():
    near = Neighbour((0, 0), ("배",), 1.0)
    assert (
        str(describe_neighbours([["배"], ["큰", "배"]], "배", [Neighbourhood("elmo", 1, (near, near))]))
        == "배 occurs 2 times in the text. For 1 of them, spread evenly over the text, here are "
        "the other occurrences whose vectors are nearest in a "
        "layer, with their cosine: at most 1.000, the same direction."
    )


def test_example_of_list_neighbours():
    near = Neighbour((0, 1), ("큰", "배"), 0.5)
    assert list_neighbours([Neighbourhood("elmo", 1, (near, near))]) == [
        ["배", "큰 배", "elmo", "1", 0.5, "배", "큰 배"]
    ]


def test_example_of_format_neighbours():
    assert (
        str(format_neighbours([Neighbourhood("elmo", 1, (Neighbour((0, 1), ("큰", "배"), 1.0),))]))
        == "elmo, layer 1: 큰 [배]"
    )
