import numpy as np

from bert_elmo_jax import load
from bert_elmo_jax.encoders.encoder import fingerprint
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.piece_encoder import PieceEncoder

PARAMS = {"encoder": {"a": np.arange(6.0, dtype=np.float32), "b": np.zeros(2, np.float32)}}


def test_the_same_numbers_have_one_name_and_others_another():
    a, b = PARAMS["encoder"]["a"], PARAMS["encoder"]["b"]
    name = fingerprint("config", PARAMS)
    assert len(name) == 16
    assert fingerprint("config", {"encoder": {"b": b, "a": a.copy()}}) == name
    others = [
        ("other", PARAMS, ""),
        ("config", PARAMS, "words"),
        ("config", {"encoder": {"a": a, "b": b + 1e-7}}, ""),
        ("config", {"encoder": {"a": a.reshape(2, 3), "b": b}}, ""),
        ("config", {"encoder": {"a": a.view(np.int32), "b": b}}, ""),
        ("config", {"encoder": {"b": a, "a": b}}, ""),
        ("config", {"a": a, "b": b}, ""),
    ]
    names = {fingerprint(config, params, words) for config, params, words in others}
    assert len(names) == len(others)
    assert name not in names


def test_a_model_is_named_for_what_it_computes(goldens):
    encoder = load(goldens / "bert_tiny")
    assert load(goldens / "bert_tiny_tf").fingerprint == encoder.fingerprint
    assert PieceEncoder(FAMILY, encoder.config, encoder.params, None).fingerprint != encoder.fingerprint
    assert load(goldens / "bert_tiny", dtype="bfloat16").fingerprint != encoder.fingerprint


def test_example_of_fingerprint():
    params = {"bias": np.zeros(2, np.float32)}
    assert fingerprint("small", params) == fingerprint("small", {"bias": np.zeros(2, np.float32)})
    assert fingerprint("small", params) != fingerprint("small", {"bias": np.zeros(3, np.float32)})
