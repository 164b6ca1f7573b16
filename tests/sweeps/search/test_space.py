"""Examples of `bert_elmo_jax.sweeps.search.trials`."""

from ml_collections import ConfigDict

from bert_elmo_jax.sweeps.search.trials import read_space


def test_example_of_read_space():
    assert (
        repr(read_space("epochs=2..4;optimizer.clip=1", ConfigDict({"epochs": 3.0, "optimizer": {"clip": 1.0}})))
        == "{'epochs': Range(low=2.0, high=4.0, log=False, whole=False), 'optimizer.clip': Values(values=(1.0,))}"
    )
    assert (
        repr(read_space("masking.split=(0.8,0.1,0.1),(1,0,0)", ConfigDict({"masking": {"split": (0.8, 0.1, 0.1)}})))
        == "{'masking.split': Values(values=('(0.8, 0.1, 0.1)', '(1, 0, 0)'))}"
    )
