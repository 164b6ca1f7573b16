"""Examples of `bert_elmo_jax.runs.start_run`."""

from pathlib import Path

from bert_elmo_jax.runs.start_run import cost_kept, read_costs, sum_costs


def test_example_of_cost_kept():
    import tempfile

    run = Path(tempfile.mkdtemp())
    with cost_kept(run):
        pass
    assert [list(cost) for cost in read_costs(run)] == [["seconds", "processor", "device"]]


def test_example_of_read_costs():
    assert read_costs(Path("no/such/run")) == []


def test_example_of_sum_costs():
    assert sum_costs(Path("no/such/run")) == 0.0
