"""Examples of `bert_elmo_jax.data.pipeline.feeds`."""

from bert_elmo_jax.data.pipeline.feeds import check_corpora


def test_example_of_check_corpora():
    assert (check_corpora("corpora/novels"), check_corpora({"a": 3.0, "b": 1.0})) == (
        {"corpora/novels": 1.0},
        {"a": 3.0, "b": 1.0},
    )
