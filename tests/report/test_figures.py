"""Examples of `bert_elmo_jax.report.figures`."""

from bert_elmo_jax.report.figures import Lines


def test_example_of_titled():
    assert repr(Lines("loss", "step", "", {"train": [(1, 2.0)]})) == "Lines('loss')"
