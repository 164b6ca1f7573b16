"""What a start cost is left in its run directory: by itself where nobody counts it, and then only."""

import json
import time

import jax
import pytest


@pytest.fixture
def cost(program, monkeypatch):
    """The module, in a process that nobody counts."""
    module = program("bert_elmo_jax.runs.start_cost")
    monkeypatch.delenv(module.COUNTED, raising=False)
    return module


def test_each_start_leaves_a_line_however_it_ends(cost, program, tmp_path):
    with cost.cost_kept(tmp_path):
        time.sleep(0.1)
    jax.devices()  # of a start that has computed, its device is told
    with pytest.raises(SystemExit), cost.cost_kept(tmp_path):
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        raise SystemExit(75)
    idle, busy = map(json.loads, (tmp_path / cost.UNHEARD).read_text().splitlines())
    assert idle["seconds"] >= 0.09 > idle["processor"] and busy["processor"] >= 0.09
    facts = program("bert_elmo_jax.sweeps.schedule").facts_of(tmp_path)
    assert facts["starts"] == [idle, busy] and "cpu" in facts["device"]


def test_a_start_that_is_counted_leaves_nothing(cost, monkeypatch, tmp_path):
    monkeypatch.setenv(cost.COUNTED, "1")
    with cost.cost_kept(tmp_path):
        pass
    monkeypatch.delenv(cost.COUNTED)
    with cost.cost_kept(tmp_path, first=False):  # one of several processes, whose first one counts
        pass
    assert not list(tmp_path.iterdir())


def test_a_cost_that_cannot_be_written_ends_no_run(cost, tmp_path):
    with cost.cost_kept(tmp_path / "gone"):
        pass
