"""Examples of `bert_elmo_jax.families.elmo.objective`."""

from bert_elmo_jax.families.elmo.objective import name_figures


def test_example_of_name_figures():
    assert name_figures({"forward": 0.0, "backward": 0.0})["held_out/perplexity"] == 1.0
