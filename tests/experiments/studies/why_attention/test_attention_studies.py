"""The studies with few steps: every table has its rows, every figure can be drawn."""

from unicodedata import normalize

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.report.show import show
from experiments.studies.why_attention import studies


@pytest.mark.long  # test_scaling.py has the numbers
def test_scaling():
    findings = studies.study_scaling(steps=3)
    random, trained = findings.tables.values()
    assert [row[:2] for row in random[1:]][-1] == ["1024", "scaled"]
    assert [row[0] for row in trained[1:]] == ["16", "16", "64", "64", "256", "256"]
    assert {row[3] for row in trained[1:]} == {"never"}
    assert all(show(figure).document.startswith("<svg") for figure in findings.figures.values())


@pytest.mark.long  # test_heads.py has the numbers
def test_heads():
    findings = studies.study_heads(steps=3)
    (table,) = findings.tables.values()
    assert [row[0] for row in table[1:]] == ["1", "2", "4", "8", "16"]
    assert set(findings.figures) == {"heads_training", "heads_1", "heads_4"}
    assert "whose" in show(findings.figures["heads_4"]).document


@pytest.mark.long
@pytest.mark.parametrize("name", ["crosstalk", "warmup"])
def test_trained_studies(name):
    findings = studies.TRAINED[name](steps=3)
    (table,) = findings.tables.values()
    assert table[-1][0] == "best possible"
    assert len({len(row) for row in table}) == 1
    (figure,) = findings.figures.values()
    assert "steps" not in show(figure).document and figure.series


def test_a_decomposed_sentence_has_its_pronoun(goldens, monkeypatch):
    short = ("the law and its use", "its", ("law", "use"))  # the tiny model reads 48 pieces
    monkeypatch.setattr(studies.word_links, "SENTENCES", (short,))
    findings = studies.study_sentence(load(goldens / "bert_tiny"), "tiny", normalize("NFD", "그는 배를 탔다 ."))
    (title,) = findings.tables
    assert title.startswith("what '그는' attends to")
