"""Examples of `bert_elmo_jax.quickstart.run_quickstart`."""

from bert_elmo_jax.quickstart.run_quickstart import Sizes, list_parts


def test_example_of_list_parts():
    assert [part.point.name for part in list_parts(Sizes())[:4]] == [
        "bert",
        "elmo",
        "senses_bert_from_scratch",
        "senses_bert",
    ]
