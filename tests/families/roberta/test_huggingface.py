"""RoBERTa's `config.json` and weights: variants, heads, poolers, and unsupported settings."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.families.roberta.formats import WEIGHTS

from ..huggingface_models import ROBERTA, Model, random_params

read_config, read_weights, write = WEIGHTS.read_config, WEIGHTS.read_weights, WEIGHTS.write

RELEASED = {
    "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
    "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514,
    "model_type": "roberta", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1,
    "type_vocab_size": 1, "vocab_size": 50265,
}  # fmt: skip


@pytest.mark.parametrize(("model_type", "title"), [("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert")])
def test_variants_keep_their_names(tmp_path, model_type, title):
    config = RobertaConfig(50, 32, 1, 4, 48, 24, model_type=model_type)
    assert config.to_huggingface(("mlm",))["architectures"] == [f"{title}ForMaskedLM"]
    write(tmp_path / "out", random_params(Model(config, "", ("tag",))), config)
    content = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (content["model_type"], content["architectures"]) == (model_type, [f"{title}ForTokenClassification"])
    params, report = read_weights(tmp_path / "out")
    assert report.heads == ("tag",) and params["tag"]["kernel"].shape == (32, 5)
    assert read_config(tmp_path / "out") == config


def test_a_classifiers_first_layer_is_the_pooler_and_a_bare_models_pooler_too(tmp_path):
    parts = {"SequenceClassification": "classifier.dense", "MultipleChoice": "roberta.pooler.dense"}
    for title, name in parts.items():
        write(tmp_path / name, random_params(f"RobertaFor{title}"), ROBERTA)
        stored = load_file(tmp_path / name / "model.safetensors")
        params, _ = read_weights(tmp_path / name)
        np.testing.assert_array_equal(params["encoder"]["pooler"]["kernel"], stored[f"{name}.weight"].T)
    write(tmp_path / "bare", random_params("RobertaModel"), ROBERTA)
    assert "pooler.dense.weight" in load_file(tmp_path / "bare" / "model.safetensors")
    assert "pooler" in read_weights(tmp_path / "bare")[0]["encoder"]


def test_a_pooler_that_the_classifier_does_not_read_is_left_out(tmp_path):
    write(tmp_path, random_params("RobertaForSequenceClassification"), ROBERTA)
    stored, name = load_file(tmp_path / "model.safetensors"), "roberta.pooler.dense.weight"
    save_file(stored | {name: np.ones((32, 32), np.float32)}, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    np.testing.assert_array_equal(params["encoder"]["pooler"]["kernel"], stored["classifier.dense.weight"].T)
    assert report.skipped == {name: "the head classify does not read it"}


def test_a_decoder_of_its_own_leaves_the_head_out(tmp_path):
    write(tmp_path, random_params("RobertaForMaskedLM"), ROBERTA)
    stored = load_file(tmp_path / "model.safetensors")
    word = stored["roberta.embeddings.word_embeddings.weight"]
    copies = {"lm_head.decoder.weight": word, "lm_head.decoder.bias": stored["lm_head.bias"]}
    constant = {"roberta.embeddings.position_ids": np.arange(28)[None]}
    save_file(stored | copies | constant, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    assert "mlm" in params and set(report.skipped) == {*copies, *constant}
    save_file(stored | {"lm_head.decoder.weight": word + 1}, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    assert set(params) == {"encoder"} and "lm_head.bias" in report.skipped


def test_released_files_are_read():
    assert RobertaConfig.from_json(RELEASED) == RobertaConfig.preset("base") == RobertaConfig()
    klue = RELEASED | {"gradient_checkpointing": False, "position_embedding_type": "absolute", "use_cache": True}
    klue |= {"tokenizer_class": "BertTokenizer", "vocab_size": 32000}
    assert RobertaConfig.from_json(klue) == RobertaConfig.preset("klue-base")
    multilingual = RELEASED | {"model_type": "xlm-roberta", "output_past": True, "vocab_size": 250002}
    multilingual |= {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24}
    assert RobertaConfig.from_json(multilingual) == RobertaConfig.preset("xlmr-large")
    assert all(RobertaConfig.preset(name).max_positions == 512 for name in RobertaConfig.PRESETS)


def test_missing_fields_have_the_values_of_transformers():
    config = RobertaConfig.from_json({"model_type": "roberta"})
    assert (config.max_positions, config.type_vocab_size, config.norm_eps) == (510, 2, 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; it is one of roberta, xlm-roberta, camembert"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'; only 'absolute'"),
        ({"hidden_size": 770}, "hidden_size 770 cannot be split evenly among num_heads 12; a head has"),
        ({"max_position_embeddings": 2}, r"max_positions is 0; .*max_positions is its max_position_embeddings"),
    ],
)
def test_unsupported_configs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        RobertaConfig.from_json(RELEASED | change)
