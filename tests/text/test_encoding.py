"""Examples of `bert_elmo_jax.text.tokenizer`."""

from bert_elmo_jax.text.tokenizer import encoding_of, join_texts


def test_example_of_encoding_of():
    assert encoding_of([7, 8], [(0, 4), (4, 7)], [0, 0], ["play", "##ing"]).types.tolist() == [0, 0]


def test_example_of_join_texts():
    cls, sep = (encoding_of([i], [(0, 0)], [-1], [token]) for i, token in ((2, "[CLS]"), (3, "[SEP]")))
    play = encoding_of([7], [(0, 4)], [0], ["play"])
    assert join_texts(play, play, cls, sep).types.tolist() == [0, 0, 0, 1, 1]
