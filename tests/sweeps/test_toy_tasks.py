"""Examples of `bert_elmo_jax.sweeps.toy_tasks`."""

from bert_elmo_jax.sweeps.toy_tasks import ToyData


def test_example_of_toydata():
    assert (
        ToyData(topics=4, words=2, train=300, dev=200).file("senses", "train").name
        == "toy-en-topics4-words2-train300-dev200/senses/train.conll"
    )
