"""Examples of `bert_elmo_jax.evals.probing`."""

from bert_elmo_jax.evals.probing import by_word, rank_labels


def test_example_of_rank_labels():
    assert rank_labels(["배", "배", "배"], ["ship", "pear", "pear"]) == {"배": ["pear", "ship"]}


def test_example_of_by_word():
    assert by_word(["배를", "탔다", "배를"], ["NOUN", "VERB", "NOUN"], ["탔다", "강이"]) == ["VERB", "NOUN"]
