"""The report of `experiments.doctor`."""

import json

import jax
import pytest

from bert_elmo_jax.quickstart import check_machine as module
from bert_elmo_jax.quickstart.check_machine import check_machine


@pytest.mark.usefixtures("as_users_run")
def test_every_check_passes_here():
    texts = {name: finding for name, finding, fine in check_machine() if fine}
    assert set(texts) == {"python", "system", "packages", "optional packages", "devices", "bfloat16", "fused attention",
                          "memory", "disk", "hub cache", "Hangul fonts", "self-test"}  # fmt: skip
    assert jax.__version__ in texts["packages"] and texts["devices"].endswith("backend cpu")
    assert texts["self-test"].startswith("passed in")
    assert "localhost" not in json.dumps(texts)


def test_a_failed_check_is_reported_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(module, "fused", lambda q, k, v: module.reference(q, k, v) + 1)
    findings = {name: (finding, fine) for name, finding, fine in check_machine()}
    finding, fine = findings["fused attention"]
    assert not fine and finding.startswith("ArithmeticError: differs from the reference by 1")
    assert findings["disk"][1]
