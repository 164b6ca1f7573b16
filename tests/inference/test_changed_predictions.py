"""Where the predictions of two models differ."""

import math

from bert_elmo_jax.inference.changed_predictions import changed_predictions
from bert_elmo_jax.inference.predictions import Number, Numbers, Tree


def test_a_number_that_became_nan_has_changed():
    values = [1.0, math.nan, 1.0, math.inf, 1.0]
    later = [math.nan, math.nan, 1.04, math.inf, 1.06]
    assert [change.row for change in changed_predictions(list(map(Number, values)), list(map(Number, later)))] == [0, 4]
    before, after = ([Numbers({"a": 0.0, "b": value}) for value in part] for part in (values, later))
    assert [change.row for change in changed_predictions(before, after)] == [0, 4]


def test_trees_differ_in_heads_and_relations():
    trees = [Tree(("a", "b"), heads, names) for heads, names in (
        ((2, 0), ("x", "root")), ((0, 1), ("root", "x")), ((2, 0), ("y", "root")),
    )]  # fmt: skip
    assert [change.row for change in changed_predictions([trees[0]] * 3, trees)] == [1, 2]
