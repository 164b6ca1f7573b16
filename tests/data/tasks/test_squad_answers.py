"""Examples of `bert_elmo_jax.data.tasks.answers`."""

from bert_elmo_jax.data.tasks.answers import Candidate, choose


def test_example_of_choose():
    assert choose("q", [Candidate("sea", 4, 7, 3.0, 0.0)], 4.0, n_best=20, threshold=0.5).answer.text == ""
    assert choose("q", [Candidate("sea", 4, 7, 3.0, 0.0)], 4.0, n_best=20, threshold=None).answer.probability == 1.0
