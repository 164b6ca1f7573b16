"""Examples of `bert_elmo_jax.sweeps.search.run_search`."""

from bert_elmo_jax.sweeps.search.run_search import read_command


def test_example_of_read_command():
    assert read_command("finetune", ["--task", "sst2", "--train=t.tsv"]).fields == {"task": "sst2", "train": "t.tsv"}
