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
    other_models = [
        ("other", PARAMS, ""),
        ("config", PARAMS, "words"),
        ("config", {"encoder": {"a": a, "b": b + 1e-7}}, ""),
        ("config", {"encoder": {"a": a.reshape(2, 3), "b": b}}, ""),
        ("config", {"encoder": {"a": a.view(np.int32), "b": b}}, ""),
        ("config", {"encoder": {"b": a, "a": b}}, ""),
        ("config", {"a": a, "b": b}, ""),
    ]
    names = {fingerprint(config, params, words) for config, params, words in other_models}
    assert len(names) == len(other_models)
    assert name not in names


def test_a_model_is_named_for_what_it_computes(goldens):
    encoder = load(goldens / "bert_tiny")
    assert load(goldens / "bert_tiny_tf").fingerprint == encoder.fingerprint
    assert PieceEncoder(FAMILY, encoder.config, encoder.params, None).fingerprint != encoder.fingerprint
    assert load(goldens / "bert_tiny", dtype="bfloat16").fingerprint != encoder.fingerprint


def test_the_methods_of_every_encoder(goldens):
    for name, batch in (
        ("bert_tiny", {"pieces": (2, 16), "segments": (2, 16), "first": (2, 8)}),
        ("elmo_tiny", {"elmo_words": (2, 10), "elmo_lengths": (2,), "elmo_characters": (2, 10, 16)}),
        ("cove_tiny", {"cove_vectors": (2, 8, 24), "cove_lengths": (2,)}),
    ):
        encoder = load(goldens / name)
        arrays = encoder.word_batch([("강가의", "은행")], 2, 8)
        assert {key: array.shape for key, array in arrays.items()} == batch
        layers = list(encoder.word_layers([["강가의", "은행"], ["배"]], [0, 1]))
        assert [array.shape for array in layers] == [(2, 2, encoder.width), (2, 1, encoder.width)]
        [vectors] = encoder.extract(["강가의 은행"], [0, -1])
        assert vectors.shape[0] == 2 and vectors.shape[2] == encoder.width
    assert load(goldens / "elmo_tiny").word_rule is None
