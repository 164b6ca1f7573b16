"""Differences between the weight maps of families: poolers stored with a classifier, tables that a model lacks."""

import dataclasses

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import WEIGHTS
from bert_elmo_jax.weights.parameter_tree import flatten, nest, part

# A classifier of two layers, and a pooler in the encoder, which multiple choice uses.
HEADS = {
    **WEIGHTS.heads,
    "classify": {"encoder/pooler": "classifier.dense", "classify": "classifier.out_proj"},
    "choice": {"encoder/pooler": "bert.pooler.dense", "choice": "classifier"},
}
ENCODER = {**WEIGHTS.encoder, "embeddings/project": "embeddings_project"}  # of other configurations
FILE = dataclasses.replace(WEIGHTS, heads=HEADS, encoder=ENCODER)
CONFIG = BertConfig(20, 8, 1, 2, 12, 6)


def random_params(*heads):
    rng = np.random.default_rng(0)
    shapes = FILE.shapes(CONFIG, {"classify": 3, "tag": 5})
    parts = {"encoder", "pooler", *heads}
    return nest({p: rng.normal(size=s).astype(np.float32) for p, s in shapes.items() if part(p) in parts})


@pytest.mark.parametrize(
    ("head", "pooler", "out"),
    [
        ("classify", "classifier.dense", "classifier.out_proj"),
        ("choice", "bert.pooler.dense", "classifier"),
        ("tag", "bert.pooler.dense", "classifier"),
        ("mlm", "bert.pooler.dense", "cls.predictions.transform.dense"),
    ],
)
def test_a_head_says_where_the_pooler_is_stored(tmp_path, head, pooler, out):
    params = random_params(head)
    FILE.write(tmp_path, params, CONFIG)
    stored = load_file(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(stored[f"{pooler}.weight"], params["encoder"]["pooler"]["kernel"].T)
    assert f"{out}.weight" in stored and not any("project" in name for name in stored)
    read, report = FILE.read_weights(tmp_path)
    assert not (report.skipped or report.unexpected or report.missing)
    ours, theirs = flatten(read), flatten(params)
    assert ours.keys() == theirs.keys()
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)


def test_numbers_that_are_counted_differently():
    def to_ours(values):
        return values | {"max_positions": values["max_positions"] - 2}

    def to_theirs(fields):
        return fields | {"max_position_embeddings": fields["max_position_embeddings"] + 2}

    file = dataclasses.replace(WEIGHTS.config_file, to_ours=to_ours, to_theirs=to_theirs)
    written = file.write(CONFIG)
    assert written["max_position_embeddings"] == 8
    assert file.read(BertConfig, written) == CONFIG
