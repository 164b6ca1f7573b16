import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.evals import glue


@pytest.fixture(scope="module")
def official(goldens):
    return json.loads((goldens / "metrics" / "glue.official.json").read_text())


@pytest.mark.parametrize("case", ["binary", "three_way", "regression", "one class predicted"])
def test_metrics_match_scikit_learn_and_scipy(official, case):
    recorded = official[case]
    lists = recorded["labels"], recorded["predictions"]
    names = set(recorded) - {"labels", "predictions"}
    assert names
    for name in names:
        for labels, predictions in (lists, map(np.array, lists)):
            assert glue.METRICS[name](labels, predictions) == pytest.approx(recorded[name], abs=1e-12), name


def test_names_score_like_numbers(official):
    recorded = official["binary"]
    labels, predictions = ([("아니다", "그렇다")[i] for i in recorded[side]] for side in ("labels", "predictions"))
    assert glue.accuracy(labels, predictions) == recorded["accuracy"]
    assert glue.f1(labels, predictions, "그렇다") == pytest.approx(recorded["f1"])
    assert glue.mcc(labels, predictions) == pytest.approx(recorded["mcc"])


def test_single_label():
    same = [1, 1, 1]
    assert glue.accuracy(same, same) == glue.f1(same, same) == glue.macro_f1(same, same) == 1.0
    assert glue.mcc(same, same) == glue.mcc([0, 1, 1], same) == 0.0
    assert glue.f1([0, 0], [0, 0]) == 0.0
    assert glue.macro_f1([0, 0, 1], [0, 0, 0]) == pytest.approx(0.4)


def test_constant_values_have_no_correlation_and_ties_share_a_rank():
    assert math.isnan(glue.pearson([1.0, 2.0, 3.0], [2.5] * 3))
    assert math.isnan(glue.spearman([1, 1, 1], [1, 2, 3]))
    # The mean of 0.1 is not exact, but the deviation must count as 0.
    assert math.isnan(glue.pearson([0.1] * 7, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    # The ranks are 1.5 1.5 3.5 3.5 5 and 2 1 3 5 4.
    a, b = [1.5, 1.5, 3.5, 3.5, 5], [2, 1, 3, 5, 4]
    assert glue.spearman([0, 0, 2, 2, 9], [20, 10, 30, 50, 40]) == pytest.approx(np.corrcoef(a, b)[0, 1])


def test_values_by_hand():
    """MCC of three labels by Gorodkin's formula: 3 of 5 right; gold counts 2 1 2, predicted counts 1 2 2."""
    labels, predictions = [0, 0, 1, 2, 2], [0, 1, 1, 2, 2]
    right, total, products = 4, 5, 2 * 1 + 1 * 2 + 2 * 2
    expected = (right * total - products) / math.sqrt((25 - (4 + 1 + 4)) * (25 - (1 + 4 + 4)))
    assert glue.mcc(labels, predictions) == pytest.approx(expected)
    assert glue.mcc([1, 1, 0, 0], [1, 1, 0, 1]) == pytest.approx(3**-0.5)
    assert glue.f1([1, 0, 1, 1], [1, 1, 0, 1]) == pytest.approx(2 / 3)
    relations = ["born", "no_relation", "died"], ["born", "born", "no_relation"]
    assert glue.micro_f1(*relations, without=["no_relation"]) == 0.5
    assert glue.micro_f1(["no", "a"], ["no", "a"], without=["no_relation"]) == 1.0
    assert glue.micro_f1(["no", "a"], ["a", "a"], without=["no_relation"]) == 0.5


INVALID = [  # metric, labels, predictions and message
    (glue.accuracy, [], [], "nothing to score"),
    (glue.accuracy, [1, 2], [1], r"shape \(2,\) and predictions of shape \(1,\)"),
    (glue.accuracy, [1, 0], ["1", "0"], "cannot be compared"),
    (glue.accuracy, [1, 0], [0.7, 0.2], r"predictions\[0\] is 0.7: expected the number or the name"),
    (glue.accuracy, [1, 0], [1, float("nan")], r"predictions\[1\] is nan"),
    (glue.accuracy, [1, None], [1, 0], "labels such as 1: expected all of them"),
    (glue.f1, ["yes", "no"], ["yes", "no"], "positive=1 is not a label like 'yes'"),
    (glue.pearson, [1.0, 2.0], [1.0, float("nan")], r"predictions\[1\] is nan: expected a finite"),
    (glue.spearman, [1.0, float("inf")], [1.0, 2.0], r"labels\[1\] is inf"),
    (glue.pearson, [1.0], [1.0], "at least two examples"),
    (glue.pearson, ["a", "b"], [1.0, 2.0], "have no correlation"),
]


def test_names_that_are_not_numbers_have_no_positive_one():
    names = ["equivalent", "not_equivalent"]
    with pytest.raises(ValueError, match=r"mrpc has the labels 0 and 1; .* use f1\(labels, predictions, positive=…\)"):
        glue.score("mrpc", names, names)
    with pytest.raises(ValueError, match="give names of labels, not numbers"):
        glue.score("klue_re", [0, 1], [1, 1])
    column = np.array(names, object)  # as pandas keeps texts
    assert glue.f1(column, column, positive="equivalent") == 1.0


def test_invalid_inputs_raise(as_users_run):
    for metric, labels, predictions, message in INVALID:
        with pytest.raises(ValueError, match=message):
            metric(labels, predictions)


def test_metrics_of_all_tasks_exist():
    for names in glue.TASK_METRICS.values():
        assert set(names) <= set(glue.METRICS)
    with pytest.raises(ValueError, match="there are no metrics for the task 'nli'; expected one of cola"):
        glue.score("nli", [1], [1])


def test_metrics_of_tasks():
    assert set(glue.score("mrpc", ["0", "1"], ["1", "1"])) == {"f1", "accuracy"}
    assert glue.score("mrpc", ["0", "1"], ["1", "1"])["f1"] == pytest.approx(2 / 3)
    assert glue.score("cola", [0, 1, 1], [0, 1, 1]) == {"mcc": 1.0}
    assert list(glue.score("korsts", [0.0, 5.0], [1.0, 2.0])) == ["spearman", "pearson"]
    assert glue.score("klue_sts", [3.0, 2.9, 5.0], [2.9, 3.1, 4.0])["f1"] == 0.5
    assert glue.score("klue_re", ["no_relation", "a"], ["no_relation", "a"]) == {"micro_f1": 1.0}
    assert glue.score("klue_ynat", ["정치", "사회"], ["정치", "정치"])["macro_f1"] == pytest.approx(1 / 3)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_properties_of_classification_metrics(pairs):
    labels, predictions = (list(side) for side in zip(*pairs))
    assert glue.micro_f1(labels, predictions) == pytest.approx(glue.accuracy(labels, predictions))
    assert -1 - 1e-12 <= glue.mcc(labels, predictions) <= 1 + 1e-12
    assert glue.mcc(labels, predictions) == pytest.approx(glue.mcc(predictions, labels))
    renamed = [["ba", "ab", "bb", "aa"][i] for i in labels], [["ba", "ab", "bb", "aa"][i] for i in predictions]
    for metric in (glue.accuracy, glue.macro_f1, glue.mcc):
        assert metric(*renamed) == pytest.approx(metric(labels, predictions))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique=True), st.sampled_from([1e-30, 1.0, 1e30]))
def test_correlations_do_not_depend_on_the_scale(numbers, scale):
    labels = np.arange(len(numbers), dtype=float)
    values = np.array(numbers, float)
    assert glue.pearson(labels, values * scale) == pytest.approx(glue.pearson(labels, values))
    assert glue.spearman(labels, np.exp(values / 10)) == pytest.approx(glue.spearman(labels, values))
