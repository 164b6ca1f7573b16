"""Reports: complete as data, short in print."""

import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.weights.parameter_tree import Report, collect, flatten, nest
from bert_elmo_jax.weights.stored import StoredTensor

bert_shapes = WEIGHTS.shapes


def test_the_text_groups_what_was_skipped_and_lists_the_rest():
    report = Report(
        "model",
        mapped={"a/b": "x", "c/d": "y"},
        skipped={f"w{i}/adam_m": "optimiser state" for i in range(200)} | {"global_step": "a counter"},
        unexpected=[f"extra{i}" for i in range(40)],
        initialised=["classify/kernel", "classify/bias"],
    )
    lines = str(report).splitlines()
    assert lines[0] == "model: 2 tensors mapped"
    assert lines[1] == "skipped (200), optimiser state: w0/adam_m, w1/adam_m, w2/adam_m and 197 more"
    assert lines[2] == "skipped (1), a counter: global_step"
    assert lines[3].startswith("unexpected, not used (40): extra0, ") and lines[3].endswith("extra39")
    assert lines[4] == "initialised (2): classify/kernel, classify/bias"
    report.raise_if_unusable()


def test_the_error_names_every_one_and_contradictions_first():
    report = Report("model", missing={f"a{i}": f"t{i}" for i in range(50)}, misshaped={"u": "[1], expected [2]"})
    with pytest.raises(ValueError, match=r"missing \(50\)") as problem:
        report.raise_if_unusable()
    assert all(text in str(problem.value) for text in (*(f"t{i}" for i in range(50)), "u: [1], expected [2]"))
    contradictions = ["lstm.dim is 4, but the weights have 6", "층 2"]
    with pytest.raises(ValueError, match="do not fit") as caught:
        Report("weights.hdf5", missing={"a": "b"}, contradictions=contradictions).raise_if_unusable()
    expected = ["contradicted (2):", *(f"  {line}" for line in contradictions), "missing (1): b"]
    assert str(caught.value).splitlines()[1:5] == expected
    with pytest.raises(ValueError, match="contradicted"):
        Report("weights.hdf5", contradictions=["층 2"]).raise_if_unusable()


def test_shapes_cover_the_whole_tree():
    config = BertConfig(vocab_size=7, hidden_size=4, num_layers=2, num_heads=2, feed_forward_size=6, max_positions=5)
    shapes = bert_shapes(config, {"classify": 3, "tag": 9})
    assert len(shapes) == 5 + 2 * 16 + 2 + 5 + 2 * 5
    assert shapes["mlm/bias"] == (7,) and shapes["encoder/layer_1/feed_forward/down/kernel"] == (6, 4)
    assert "classify/kernel" not in bert_shapes(config, {})
    assert flatten(nest(shapes)) == shapes


def test_collected_parameters_do_not_share_memory_with_the_file():
    array = np.ones((2, 3), np.float32)
    stored = {
        "k": StoredTensor((2, 3), "float32", lambda: array),
        "b": StoredTensor((2,), "float32", lambda: array[:, 0]),
    }
    table = {"nsp/kernel": "k", "nsp/bias": "b"}
    shapes = {"nsp/kernel": (3, 2), "nsp/bias": (2,)}
    params = collect(stored, dict(table), table, {"nsp/kernel"}, shapes, Report("x"))
    array[:] = 0
    assert params["nsp"]["kernel"].shape == (3, 2) and params["nsp"]["kernel"].all() and params["nsp"]["bias"].all()
    stored = {"b": StoredTensor((1,), "float64", lambda: np.array([1e300]))}
    with pytest.raises(ValueError, match=r"NaN or infinity \(as float32\): b"):
        collect(stored, {"nsp/bias": "b"}, {"nsp/bias": "b"}, set(), {"nsp/bias": (1,)}, Report("x"))
