"""Examples of `bert_elmo_jax.toyworld.shapes`."""

from bert_elmo_jax.toyworld.shapes import Shape, Slot, body_shapes, opening_shapes, slots


def test_example_of_opening_shapes():
    assert [shape.frame for _, shape in opening_shapes()] == ["opening"]


def test_example_of_body_shapes():
    assert repr(sum(weight for weight, _ in body_shapes())) == "Fraction(1, 1)"


def test_example_of_slot():
    assert Slot("thing", "things0", "many").name == "thing"


def test_example_of_slots():
    assert slots(Shape("act", subject="one", place=True)) == (("agent", "people"), ("act", "acts"), ("place", "places"))
