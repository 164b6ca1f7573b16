"""DistilBERT's `config.json` and weights: heads, poolers, and unsupported settings."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax.families.distilbert.config import DistilBertConfig
from bert_elmo_jax.families.distilbert.huggingface import WEIGHTS, read_config, read_weights, write
from bert_elmo_jax.families.distilbert.model import sinusoids
from bert_elmo_jax.weights.parameter_tree import flatten, nest, part

CONFIG = DistilBertConfig(50, 32, 2, 4, 48, 24, activation="gelu_new", classifier_dropout=0.3)
# The heads of each of transformers' classes, and the modules of theirs that are not in the encoder.
MODELS = {
    "DistilBertModel": ((), ()),
    "DistilBertForMaskedLM": (("mlm",), ("vocab_transform", "vocab_layer_norm", "vocab_projector")),
    "DistilBertForSequenceClassification": (("classify",), ("pre_classifier", "classifier")),
    "DistilBertForMultipleChoice": (("choice",), ("pre_classifier", "classifier")),
    "DistilBertForTokenClassification": (("tag",), ("classifier",)),
    "DistilBertForQuestionAnswering": (("span",), ("qa_outputs",)),
}


def random_params(heads):
    rng = np.random.default_rng(0)
    parts = {"encoder", *heads} | ({"pooler"} if {"classify", "choice"} & set(heads) else set())
    shapes = WEIGHTS.shapes(CONFIG, {"classify": 3, "tag": 5})
    return nest({p: rng.normal(size=s).astype(np.float32) for p, s in shapes.items() if part(p) in parts})


@pytest.mark.parametrize("name", MODELS)
def test_written_and_read_again_is_the_same(tmp_path, name):
    heads, modules = MODELS[name]
    params = random_params(heads)
    write(tmp_path / "out", params, CONFIG)
    read, report = read_weights(tmp_path / "out")
    ours, theirs = flatten(read), flatten(params)
    assert ours.keys() == theirs.keys() and report.heads == heads and not (report.skipped or report.unexpected)
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path])
    stored = load_file(tmp_path / "out" / "model.safetensors")
    outside = {key.split(".")[0] for key in stored if not key.startswith("distilbert.")}
    assert outside == (set(modules) or {"embeddings", "transformer"})
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [name]
    assert read_config(tmp_path / "out") == CONFIG


def test_the_first_layer_of_a_classifier_is_the_pooler(tmp_path):
    write(tmp_path, random_params(("classify",)), CONFIG)
    stored = load_file(tmp_path / "model.safetensors")
    params, _ = read_weights(tmp_path)
    np.testing.assert_array_equal(params["encoder"]["pooler"]["kernel"], stored["pre_classifier.weight"].T)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": None}))
    params, report = read_weights(tmp_path)
    assert set(params) == {"encoder"} and "pooler" not in params["encoder"]
    assert set(report.skipped) == {f"{m}.{k}" for m in ("pre_classifier", "classifier") for k in ("weight", "bias")}
    assert set(read_weights(tmp_path, classifier="classify")[0]) == {"encoder", "classify"}


def test_a_pooler_without_a_classifier_is_not_written(tmp_path):
    params = random_params(("classify",))
    del params["classify"]
    with pytest.raises(ValueError, match="encoder/pooler has no place in a DistilBERT without a classifier"):
        write(tmp_path / "out", params, CONFIG)
    params = random_params(("classify",))
    del params["encoder"]["pooler"]
    with pytest.raises(ValueError, match="classify cannot be written without its pooler"):
        write(tmp_path / "out", params, CONFIG)


def test_a_decoder_of_its_own_leaves_the_head_out(tmp_path):
    write(tmp_path, random_params(("mlm",)), CONFIG)
    stored = load_file(tmp_path / "model.safetensors")
    word = stored["distilbert.embeddings.word_embeddings.weight"]
    save_file(stored | {"vocab_projector.weight": word}, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    assert "mlm" in params and set(report.skipped) == {"vocab_projector.weight"}
    save_file(stored | {"vocab_projector.weight": word + 1}, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    assert set(params) == {"encoder"} and "vocab_projector.bias" in report.skipped


def test_a_released_file_is_read():
    fields = {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
        "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
        "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "output_past": True, "pad_token_id": 0,
        "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": True, "tie_weights_": True,
        "vocab_size": 119547,
    }  # fmt: skip
    assert DistilBertConfig.from_json(fields) == DistilBertConfig.preset("multilingual", sinusoidal=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; only 'distilbert' is supported"),
        ({"tie_weights_": False}, "tie_weights_ is False; only True"),
        ({"sinusoidal_pos_embds": "no"}, "sinusoidal_pos_embds is 'no'; it must be true or false"),
        ({"dim": 770}, r"hidden_size 770 cannot be split evenly among num_heads 12; a head of DistilBERT"),
        ({"hidden_dimm": 3}, "hidden_dimm is 3, a field of unknown meaning; did you mean hidden_dim"),
    ],
)
def test_what_cannot_be_honoured(change, message):
    with pytest.raises(ValueError, match=message):
        DistilBertConfig.from_json({"model_type": "distilbert"} | change)


def test_fresh_sinusoidal_positions():
    np.testing.assert_allclose(sinusoids(None, (3, 4))[2], [np.sin(2), np.cos(2), np.sin(0.02), np.cos(0.02)], 1e-6)
