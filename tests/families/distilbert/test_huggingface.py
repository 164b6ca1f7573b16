"""DistilBERT's `config.json` and weights: heads, poolers, and unsupported settings."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax.families.distilbert.family import DistilBertConfig
from bert_elmo_jax.families.distilbert.formats import WEIGHTS
from bert_elmo_jax.families.piece_embeddings import interleaved_sinusoids as sinusoids

from ..huggingface_models import DISTILBERT, random_params

read_weights, write = WEIGHTS.read_weights, WEIGHTS.write


def test_the_first_layer_of_a_classifier_is_the_pooler(tmp_path):
    write(tmp_path, random_params("DistilBertForSequenceClassification"), DISTILBERT)
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
    params = random_params("DistilBertForSequenceClassification")
    del params["classify"]
    with pytest.raises(ValueError, match="encoder/pooler has no place in a DistilBERT without a classifier"):
        write(tmp_path / "out", params, DISTILBERT)
    params = random_params("DistilBertForSequenceClassification")
    del params["encoder"]["pooler"]
    with pytest.raises(ValueError, match="classify cannot be written without its pooler"):
        write(tmp_path / "out", params, DISTILBERT)


def test_a_decoder_of_its_own_leaves_the_head_out(tmp_path):
    write(tmp_path, random_params("DistilBertForMaskedLM"), DISTILBERT)
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
        ({"dim": 770}, r"hidden_size 770 cannot be split evenly among num_heads 12; a head has"),
    ],
)
def test_unsupported_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        DistilBertConfig.from_json({"model_type": "distilbert"} | change)


def test_fresh_sinusoidal_positions():
    np.testing.assert_allclose(sinusoids(None, (3, 4))[2], [np.sin(2), np.cos(2), np.sin(0.02), np.cos(0.02)], 1e-6)
