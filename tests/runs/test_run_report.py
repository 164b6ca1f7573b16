"""The report of a run can be drawn for any kind of metrics."""

import json

import pytest

from bert_elmo_jax.runs.pretraining_end import draw_figures_reached
from bert_elmo_jax.runs.run_report import write_report
from bert_elmo_jax.train.metrics import Metrics, read_metrics


def test_every_figure_is_drawn_and_what_was_asked_is_told(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"data": "말뭉치 <1>", "steps": 3}), encoding="utf-8")
    with Metrics(tmp_path, 0) as metrics:
        metrics.write(1, {"loss": 3.0, "mlm": 3.0})
        metrics.write(2, {"loss": float("nan"), "mlm": 2.0})
        metrics.write(3, {"loss": 1.0, "mlm": 1.0, "held_out/accuracy": 0.5})
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert page.index("held_out/accuracy: 0.5") < page.index("loss: 1") < page.index("mlm: 1")
    assert "말뭉치 &lt;1&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert 'name="viewport"' in page


def test_redundant_curves_are_not_drawn(tmp_path):
    with Metrics(tmp_path, 0) as metrics:
        for step in range(1, 60):
            line = {"held_out/perplexity": 9.0 / step, "held_out/score": -9.0 / step}
            metrics.write(step, {"loss": float(step % 7), "learning_rate": step / 100, "balance": -1.0, **line})
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "held_out/perplexity: 0.15" in page
    assert "held_out/score" not in page  # its mirror image
    assert "balance: -1" in page
    drawn = {
        name: page.partition(f"{name}: ")[2].partition("</figure>")[0].count("<polyline")
        for name in ("loss", "learning_rate")
    }
    assert drawn == {"loss": 2, "learning_rate": 1}  # the learning rate is no measurement


def test_a_run_that_said_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no metrics\.jsonl"):
        write_report(tmp_path)
    with Metrics(tmp_path, 0):
        pass
    assert read_metrics(tmp_path) == []
    assert "0 steps" in write_report(tmp_path).read_text(encoding="utf-8")


def test_the_best_step_is_that_of_a_checkpoint():
    """A better evaluation between two checkpoints is not in the folder."""
    score = "held_out/accuracy"
    lines = [{"step": step, score: value} for step, value in ((5, 0.1), (10, 0.9), (12, 0.8))]
    page = draw_figures_reached(lines, {}, score, kept=12)[1]
    assert "At step 12 of 12, the best checkpoint by" in page and "accuracy 0.8" in page
    assert "At step 10 of 12" in draw_figures_reached(lines, {}, score)[1]
