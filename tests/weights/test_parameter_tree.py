"""Trees of parameters: their paths, prefixes of names in files, and shapes."""

import re

import pytest

from bert_elmo_jax.weights.parameter_tree import (
    Report,
    ancestors,
    check_shapes,
    encoder_prefix,
    flatten,
    locate,
    nest,
    part,
)  # fmt: skip


def test_paths_and_prefixes():
    paths = ("encoder/pooler/bias", "encoder/layer_0/attention/key/bias", "mlm/dense/bias")
    assert [part(path) for path in paths] == ["pooler", "encoder", "mlm"]
    assert Report("a", mapped={"encoder/pooler/bias": "pooler.dense.bias", "nsp/bias": "nsp.bias"}).heads == ("nsp",)
    assert nest({"a/b": 1, "a/c": 2}) == {"a": {"b": 1, "c": 2}}
    assert flatten({"a": {"b": 1, "c": 2}}) == {"a/b": 1, "a/c": 2}
    assert ancestors("module.bert.", ".") == ["module.bert.", "module.", ""]
    tensors = {"bert.embeddings.word.weight": 0, "bert.pooler.bias": 0}
    assert encoder_prefix(tensors, "embeddings.word.weight", ".", "x") == "bert."
    names = locate({"nsp/bias": "cls.bias"}, {"module.cls.bias": "module.cls.bias"}, "module.bert.", ".")
    assert names == ({"nsp/bias": "module.cls.bias"}, {"nsp/bias": "cls.bias"})


def test_shapes_that_do_not_fit():
    message = (
        "parameters do not fit the configuration:\nmissing (1): nsp/kernel\nmis-shaped (1): nsp/bias [3], expected [2]"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        check_shapes({"nsp/bias": (3,)}, {"nsp/bias": (2,), "nsp/kernel": (8, 2)}, "runs/a")
