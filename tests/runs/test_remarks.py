"""Remarks on the metrics of a run: jumps of held-out losses, and steps that updated nothing."""

import pytest

from bert_elmo_jax.runs.remarks import find_remarks
from bert_elmo_jax.runs.run_report import write_report
from bert_elmo_jax.train.metrics import Metrics


def held_out(*values, name="held_out/perplexity"):
    return [{"step": step, "loss": 1.0, name: value} for step, value in enumerate(values, start=1)]


def test_a_falling_perplexity_is_not_remarked_on():
    assert find_remarks(held_out(9.0, 5.0, 6.0, 4.0)) == []
    assert find_remarks([]) == []


def test_the_largest_jump_of_each_figure():
    assert find_remarks(held_out(9.0, 4.0, 8.0, 20.0, 3.0)) == [
        "held_out/perplexity rose from 4 (step 2, the best before) to 20 (step 4)."
    ]
    assert find_remarks(held_out(1.0, 1.3, name="dev/loss")) == []
    [remark] = find_remarks(held_out(1.0, 2.0, name="dev/loss"))
    assert remark.startswith("dev/loss rose from 1 (step 1")


def test_a_figure_that_is_not_finite_any_more():
    [remark] = find_remarks(held_out(4.0, None))
    assert remark.endswith("to a number that is not finite (step 2).")


def test_a_figure_that_was_never_finite():
    [remark] = find_remarks(held_out(None, None))
    assert remark == "held_out/perplexity was not finite at its first measurement (step 1)."
    assert find_remarks(held_out(None, 4.0)) == [remark]
    assert len(find_remarks(held_out(None, 4.0, 20.0))) == 2


def test_losses_that_have_an_accuracy_beside_them():
    lines = [
        {"step": step, "held_out/nsp": value, "held_out/nsp_accuracy": 0.5} for step, value in ((1, 1.0), (2, 9.0))
    ]
    assert find_remarks(lines) == ["held_out/nsp rose from 1 (step 1, the best before) to 9 (step 2)."]
    assert find_remarks([{key: line[key] for key in ("step", "held_out/nsp")} for line in lines]) == []


@pytest.mark.parametrize("name", ["held_out/accuracy", "loss", "gradient_norm"])
def test_other_figures_may_rise(name):
    assert find_remarks(held_out(1.0, 90.0, name=name)) == []


def test_steps_that_updated_nothing():
    lines = [{"step": step, "loss": None, "gradient_norm": None} for step in range(1, 8)]
    [remark] = find_remarks([*lines, {"step": 8, "loss": 1.0, "gradient_norm": 1.0}])
    assert remark == (
        "The loss or a gradient was not finite in 7 steps (1, 2, 3, 4, 5, …), which updated nothing."
    )  # fmt: skip


def test_remarks_follow_the_result(tmp_path):
    with Metrics(tmp_path, 0) as metrics:
        metrics.write(1, {"loss": 2.0, "held_out/perplexity": 2.0})
        metrics.write(2, {"loss": 1.0, "held_out/perplexity": 7.0})
    page = write_report(tmp_path, [("More", "<p>more</p>")], ["1 < 2"]).read_text(encoding="utf-8")
    assert "<li>1 &lt; 2</li><li>held_out/perplexity rose from 2" in page
    assert page.index("More") < page.index("class=remarks") < page.index("<svg")
