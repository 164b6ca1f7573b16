"""The report of `experiments.doctor`."""

import json

import jax
import pytest

from bert_elmo_jax.quickstart import check_machine as module
from bert_elmo_jax.quickstart.check_machine import check_machine


@pytest.mark.usefixtures("as_users_run")
def test_every_check_passes_here():
    found = {name: finding for name, finding, fine in check_machine() if fine}
    assert set(found) == {"python", "system", "packages", "optional packages", "devices", "bfloat16", "fused attention",
                          "memory", "disk", "hub cache", "Hangul fonts", "self-test"}  # fmt: skip
    assert jax.__version__ in found["packages"] and found["devices"].endswith("backend cpu")
    assert found["self-test"].startswith("passed in")
    assert "localhost" not in json.dumps(found)


def test_what_fails_is_reported_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(module, "fused", lambda q, k, v: module.reference(q, k, v) + 1)
    found = {name: (finding, fine) for name, finding, fine in check_machine()}
    finding, fine = found["fused attention"]
    assert not fine and finding.startswith("ArithmeticError: differs from the reference by 1")
    assert found["disk"][1]
