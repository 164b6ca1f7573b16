"""Examples of `bert_elmo_jax.data.tasks.tables`."""

from bert_elmo_jax.data.tasks.tables import Record


def test_example_of_record():
    assert Record(2, {"text": "좋다", "label": "1"}).cells["text"] == "좋다"
