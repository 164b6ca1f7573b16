"""Examples of `bert_elmo_jax.plan.chips`."""

from bert_elmo_jax.plan.chips import CHIPS, compute_roofline
from bert_elmo_jax.plan.compiled_cost import Cost


def test_example_of_compute_roofline():
    cost = Cost(flops=197e12, bytes=819e9 / 2)
    assert compute_roofline(cost, CHIPS["v5e"], links=2) == {"compute": 1.0, "memory": 0.5, "network": 0.0}
