"""Every start of a run records its cost in the run directory."""

import time

import jax
import pytest

from bert_elmo_jax.runs.start_run import COSTS, cost_kept, read_costs, sum_costs


def test_each_start_leaves_a_line_however_it_ends(tmp_path):
    with cost_kept(tmp_path):
        time.sleep(0.1)
    jax.devices()  # a start that has computed names its device
    with pytest.raises(SystemExit), cost_kept(tmp_path):
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        raise SystemExit(75)
    idle, busy = read_costs(tmp_path)
    assert idle["seconds"] >= 0.09 > idle["processor"] and busy["processor"] >= 0.09
    assert "cpu" in busy["device"]
    assert sum_costs(tmp_path, "processor") == idle["processor"] + busy["processor"]


def test_of_several_processes_the_first_records_the_cost(tmp_path):
    with cost_kept(tmp_path, first=False):
        pass
    assert not list(tmp_path.iterdir())


def test_a_cost_that_cannot_be_written_ends_no_run(tmp_path):
    with cost_kept(tmp_path / "gone"):
        pass


@pytest.mark.parametrize("text", ['{"sec', "[]", "3", '{"seconds": null, "processor": 1}', "\\xff"])
def test_damaged_lines_are_skipped(tmp_path, text):
    with cost_kept(tmp_path):
        pass
    with (tmp_path / COSTS).open("ab") as file:
        file.write(text.encode() + b"\n")
    assert len(read_costs(tmp_path)) == 1
