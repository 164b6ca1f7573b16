"""Examples of `bert_elmo_jax.text.wordpiece`."""

from bert_elmo_jax.text.wordpiece import compose


def test_example_of_compose():
    assert compose("\u1112\u1161\u11ab 글") == ("한 글", [(0, 3), (3, 4), (4, 5)])
