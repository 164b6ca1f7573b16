"""Examples of `bert_elmo_jax.plan.plan`."""

from bert_elmo_jax.plan.plan import show_gib


def test_example_of_show_gib():
    assert show_gib(3 * 2**29) == "1.50 GiB"
