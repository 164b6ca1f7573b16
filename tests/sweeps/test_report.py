"""Examples of `bert_elmo_jax.sweeps.report`."""

from bert_elmo_jax.sweeps.report import describe_order, write_cell
from bert_elmo_jax.sweeps.table import Order, Score


def test_example_of_write_cell():
    assert (write_cell(Score((84.0, 85.0)), 0.01), write_cell(Score((84.0, None)))) == (
        "84.50 ± 0.71 *",
        "84.00 (1 of 2 seeds)",
    )


def test_example_of_describe_order():
    assert describe_order(Order(1.0, (), 3)) == "order of rows as the paper's: Kendall's τ = 1.00, all 3 pairs agree."
