"""Examples of `bert_elmo_jax.runs.start_run`."""

from bert_elmo_jax.runs.start_run import keep_freed_memory


def test_example_of_keep_freed_memory():
    keep_freed_memory()
