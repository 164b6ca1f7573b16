"""Examples of `bert_elmo_jax.families.elmo.forward`."""

from bert_elmo_jax.families.elmo.forward import check_cache


def test_example_of_check_cache():
    assert check_cache(["눈", "눈", "배"]) == ["눈", "배"]
