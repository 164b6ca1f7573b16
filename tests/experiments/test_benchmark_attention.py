"""The program of the small studies of attention: its tables, figures and messages."""

import functools

import pytest

from bert_elmo_jax.report.figures import Lines
from experiments.studies.why_attention.studies import Findings, thin, write_findings

from .programs import run_program


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return functools.partial(run_program, "benchmarks.attention", "--output=figures")


@pytest.mark.long
def test_lengths(run, tmp_path):
    status, out, _ = run("--what=length", "--steps=2")
    assert status == 0
    assert "length from which attention costs more" in out
    assert [line.split()[0] for line in out.splitlines()[3:5]] == ["16", "32"]
    for name in ("length_time", "length_memory"):
        drawn = (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert drawn.startswith("<svg") and "attention" in drawn
        assert f"{name}.svg" in out


def test_tables_and_figures_are_written(tmp_path, capsys):
    findings = Findings(
        {"a table": [["d", "loss"], ["4", "0.5"]]}, {"curve": Lines("t", "x", "y", {"배": [(1, 2), (2, 3)]})}
    )
    assert write_findings(findings, tmp_path / "new") == [tmp_path / "new" / "curve.svg"]
    assert capsys.readouterr().out == "a table\n\nd  loss\n4  0.5\n\n"
    assert "배" in (tmp_path / "new" / "curve.svg").read_text(encoding="utf-8")


def test_curves_keep_their_ends():
    points = thin(range(1, 1_001))
    assert len(points) == 50
    assert points[0] == (20, 10.5) and points[-1] == (1_000, 990.5)
