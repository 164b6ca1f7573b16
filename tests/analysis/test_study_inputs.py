"""Examples of `bert_elmo_jax.analysis.study_inputs`."""

from bert_elmo_jax.analysis.study_inputs import shorten_names


def test_example_of_shorten_names():
    assert shorten_names(["runs/elmo", "runs/bert"]) == {"elmo": "runs/elmo", "bert": "runs/bert"}
