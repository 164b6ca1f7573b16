"""The report of a run can be drawn for any kind of metrics."""

import json
import math

import pytest

from bert_elmo_jax.train.metrics import Metrics, read_metrics
from bert_elmo_jax.train.report import POINTS, curve, smooth, thinned, write_report


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


def test_what_says_nothing_new_is_not_drawn(tmp_path):
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
    assert drawn == {"loss": 2, "learning_rate": 1}  # no mean of what is no measurement


def test_a_run_that_said_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no metrics\.jsonl"):
        write_report(tmp_path)
    with Metrics(tmp_path, 0):
        pass
    assert read_metrics(tmp_path) == []
    assert "0 steps" in write_report(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [math.inf, 1.0], [-1e30, 1e30], list(range(5000))])
def test_any_curve_stays_inside_its_frame(values):
    drawn = curve([(float(step), float(value)) for step, value in enumerate(values, 1)])
    points = drawn.split('points="')[-1].split('"')[0].split()
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= 560
        assert 0 <= y <= 260


def test_no_finite_value():
    assert curve([(1.0, math.nan)]) == "<p>no finite value</p>"


def test_many_points_are_thinned_and_smoothed_without_moving():
    points = [(float(step), float(step)) for step in range(1, 100_001)]
    few = thinned(points)
    assert len(few) <= POINTS
    assert sum(value for _, value in few) / len(few) == pytest.approx(50_000, rel=0.01)
    assert smooth([(1.0, 5.0)] * 40) == [(1.0, 5.0)] * 40
