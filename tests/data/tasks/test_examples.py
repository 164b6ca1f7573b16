"""Examples of `bert_elmo_jax.data.tasks.examples`."""

from bert_elmo_jax.data.tasks.examples import a_number


def test_example_of_a_number():
    assert (a_number("4.5"), a_number("nan"), a_number("4,5")) == (4.5, None, None)
