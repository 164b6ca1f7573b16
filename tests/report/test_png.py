"""Examples of `bert_elmo_jax.report.png`."""

from bert_elmo_jax.report.figures import Bars
from bert_elmo_jax.report.png import collect_words


def test_example_of_collect_words():
    assert collect_words(Bars("배", ["layer 1"], {"runs/elmo": [1.0]})) == "배 layer 1 runs/elmo"
