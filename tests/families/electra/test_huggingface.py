"""ELECTRA's `config.json` and weights: both networks, heads, poolers, projections, and unsupported settings."""

import dataclasses

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.electra.formats import WEIGHTS, write
from bert_elmo_jax.families.replaced import take_generator

from ..huggingface_models import ELECTRA, Model, assert_same, random_params

read_weights = WEIGHTS.read_weights

# As released, without the fields of class labels.
RELEASED = {
    "architectures": ["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": None,
    "embedding_size": 768, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
    "model_type": "electra", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
    "position_embedding_type": "absolute", "summary_activation": "gelu", "summary_last_dropout": 0.1,
    "summary_type": "first", "summary_use_proj": True, "type_vocab_size": 2, "use_cache": True, "vocab_size": 35000,
}  # fmt: skip


def test_embeddings_are_projected_only_where_the_widths_differ(tmp_path):
    same = dataclasses.replace(ELECTRA, embedding_size=ELECTRA.hidden_size)
    for config, projected in ((ELECTRA, True), (same, False)):
        params = random_params(Model(config, "", ("replaced",)))
        assert ("project" in params["encoder"]) == projected
        folder = tmp_path / str(projected)
        write(folder, params, config)
        stored = load_file(folder / "model.safetensors")
        assert ("electra.embeddings_project.weight" in stored) == projected
        assert_same(read_weights(folder)[0], params)


def test_the_first_layer_of_a_classifier_is_the_pooler(tmp_path):
    parts = {"SequenceClassification": "classifier.dense", "MultipleChoice": "sequence_summary.summary"}
    for title, theirs in parts.items():
        write(tmp_path / title, random_params(f"ElectraFor{title}"), ELECTRA)
        stored = load_file(tmp_path / title / "model.safetensors")
        params, _ = read_weights(tmp_path / title)
        np.testing.assert_array_equal(params["encoder"]["pooler"]["kernel"], stored[f"{theirs}.weight"].T)


def test_a_generator_is_written_beside_its_discriminator(tmp_path):
    params = random_params(Model(ELECTRA, "", ("replaced", "generator")))
    write(tmp_path / "out", params, ELECTRA)
    discriminator, (config, generator) = read_weights(tmp_path / "out")[0], take_generator(ELECTRA, params)
    assert_same(discriminator, {name: params[name] for name in ("encoder", "replaced")})
    assert_same(read_weights(tmp_path / "out" / "generator")[0], generator)
    assert (config.hidden_size, config.num_heads, config.feed_forward_size) == (8, 1, 12)
    loaded = load(tmp_path / "out" / "generator")
    assert loaded.heads == ("mlm",) and loaded.forward(np.array([[5, 6]])).mlm_logits.shape == (1, 2, 50)
    with pytest.raises(ValueError, match="the weights have no generator, only encoder, replaced"):
        take_generator(ELECTRA, discriminator)


def test_a_decoder_of_its_own_leaves_the_head_out(tmp_path):
    write(tmp_path, random_params("ElectraForMaskedLM"), ELECTRA)
    stored = load_file(tmp_path / "model.safetensors")
    word = stored["electra.embeddings.word_embeddings.weight"]
    save_file(stored | {"generator_lm_head.weight": word}, tmp_path / "model.safetensors")
    params, report = read_weights(tmp_path)
    assert "mlm" in params and set(report.skipped) == {"generator_lm_head.weight"}
    save_file(stored | {"generator_lm_head.weight": word + 1}, tmp_path / "model.safetensors")
    assert set(read_weights(tmp_path)[0]) == {"encoder"}


def test_a_released_file_is_read():
    assert ElectraConfig.from_json(RELEASED) == ElectraConfig.preset("koelectra-base-v3")
    small = {"embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}
    assert ElectraConfig.from_json(RELEASED | small) == ElectraConfig.preset("koelectra-small-v3")


def test_the_papers_generators():
    shown = {}
    for name in ("small", "base", "large"):
        c = ElectraConfig.preset(name).generator
        shown[name] = (c.embedding_size, c.hidden_size, c.num_heads, c.feed_forward_size, c.num_layers)
    assert shown == {"small": (128, 64, 1, 256, 12), "base": (768, 256, 4, 1024, 12), "large": (1024, 256, 4, 1024, 24)}
    odd = ElectraConfig(hidden_size=60, num_heads=12, generator_size=0.35).generator
    assert (odd.hidden_size, odd.num_heads) == (21, 3)  # four heads would not divide 21
    with pytest.raises(ValueError, match=r"generator_size is 3\.0; it is the generator's share of hidden_size"):
        ElectraConfig(generator_size=3.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; only 'electra' is supported"),
        ({"summary_type": "mean"}, "summary_type is 'mean'; only 'first'"),
        ({"hidden_size": 770}, r"hidden_size 770 cannot be split evenly among num_heads 12; a head has"),
        ({"embedding_size": 0}, "embedding_size is 0; it must be at least 1"),
    ],
)
def test_unsupported_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ElectraConfig.from_json(RELEASED | change)
