"""Examples of `bert_elmo_jax.quickstart.compare_seeds`."""

from bert_elmo_jax.quickstart.compare_seeds import measure_tagged_accuracy


def test_example_of_measure_tagged_accuracy():
    from types import SimpleNamespace as Of

    assert measure_tagged_accuracy([Of(tags=("O", "배.ship", "배.pear"))], [Of(tags=("O", "배.ship", "O"))]) == 0.5
