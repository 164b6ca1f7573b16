"""Examples of `bert_elmo_jax.families.piece_objective`."""

from bert_elmo_jax.families.piece_objective import name_figures


def test_example_of_name_figures():
    assert name_figures({"mlm": 0.0, "mlm_accuracy": 1.0}) == {
        "held_out/mlm_perplexity": 1.0,
        "held_out/mlm_accuracy": 1.0,
    }
