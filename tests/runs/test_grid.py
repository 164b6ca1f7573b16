"""Examples of `bert_elmo_jax.runs.finetuning`."""

from ml_collections import ConfigDict

from bert_elmo_jax.runs.finetuning import list_settings


def test_example_of_list_settings():
    assert list_settings(ConfigDict({"epochs": 3.0, "seed": 0}), "epochs=2,3", ["0", "1"])[1] == {
        "epochs": 2.0,
        "seed": 1,
    }
