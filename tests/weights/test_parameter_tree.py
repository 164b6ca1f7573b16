"""Examples of `bert_elmo_jax.weights.parameter_tree`."""

import re

import pytest

from bert_elmo_jax.weights.parameter_tree import Report, check_shapes, flatten, nest, part


def test_example_of_check_shapes():
    with pytest.raises(
        ValueError,
        match=re.escape(
            "runs/a: parameters do not fit the configuration:\nmissing (1): nsp/kernel\n"
            "mis-shaped (1): nsp/bias [3], expected [2]"
        ),
    ):
        check_shapes({"nsp/bias": (3,)}, {"nsp/bias": (2,), "nsp/kernel": (8, 2)}, "runs/a")


def test_parts_of_paths():
    paths = ("encoder/pooler/bias", "encoder/layer_0/attention/key/bias", "mlm/dense/bias")
    assert [part(path) for path in paths] == ["pooler", "encoder", "mlm"]
    assert Report("a", mapped={"encoder/pooler/bias": "pooler.dense.bias", "nsp/bias": "nsp.bias"}).heads == ("nsp",)


def test_trees_and_flat_dictionaries():
    assert nest({"a/b": 1, "a/c": 2}) == {"a": {"b": 1, "c": 2}}
    assert flatten({"a": {"b": 1, "c": 2}}) == {"a/b": 1, "a/c": 2}
