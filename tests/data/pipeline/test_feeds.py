"""Examples of `bert_elmo_jax.data.pipeline.feeds`."""

from bert_elmo_jax.data.pipeline.feeds import _proportional, check_corpora


def test_example_of_check_corpora():
    assert (check_corpora("corpora/novels"), check_corpora({"a": 3.0, "b": 1.0})) == (
        {"corpora/novels": 1.0},
        {"a": 3.0, "b": 1.0},
    )


def test_rows_are_shared_in_proportion_to_the_weights():
    assert (_proportional(8, [3.0, 1.0]), _proportional(4, [100.0, 1.0, 1.0])) == ([6, 2], [2, 1, 1])
