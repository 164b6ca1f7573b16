"""Examples of `bert_elmo_jax.inference.toy_worlds`."""

from bert_elmo_jax.inference.toy_worlds import find_common_world, load_worlds


def test_example_of_load_worlds():
    assert load_worlds({"toyworld": {"language": "en,ko", "topics": 4, "words": 2}})["ko"].topics == 4


def test_example_of_find_common_world():
    assert find_common_world(["tests/goldens/bert_tiny"], "ko").topics == 24
