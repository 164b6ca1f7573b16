"""`config.json` and weights of GPT-2 and GPT-1: heads, old files, and unsupported settings."""

import dataclasses

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.huggingface import read_weights, write
from bert_elmo_jax.weights.parameter_tree import flatten

from ..huggingface_models import GPT1, GPT2, random_params


def test_old_files_have_masks_and_no_prefix(tmp_path):
    """The released `gpt2`: without the prefix, with the buffers of its causal masks; and a copy of the decoder."""
    params = random_params("GPT2LMHeadModel")
    write(tmp_path, params, GPT2)
    file = tmp_path / "model.safetensors"
    stored = {name.removeprefix("transformer."): value for name, value in load_file(file).items()}
    buffers = {"h.0.attn.bias": np.tri(24, dtype=np.float32)[None, None], "h.1.attn.masked_bias": np.float32(-1e4)}
    save_file(stored | {n: np.asarray(v) for n, v in buffers.items()}, file)
    read, report = read_weights(tmp_path)
    assert flatten(read).keys() == flatten(params).keys() and report.skipped == dict.fromkeys(buffers, "a constant")
    decoder = {"lm_head.weight": stored["wte.weight"]}
    prefixed = {f"transformer.{name}": value for name, value in stored.items()}
    save_file(prefixed | decoder, file)
    assert read_weights(tmp_path)[1].skipped == {"lm_head.weight": "a copy of its tied tensor"}
    # Of two tied tensors, transformers saves the first by name.
    save_file({name: value for name, value in (prefixed | decoder).items() if "wte" not in name}, file)
    np.testing.assert_array_equal(read_weights(tmp_path)[0]["encoder"]["embeddings"]["word"], stored["wte.weight"])
    save_file(prefixed | {"lm_head.weight": stored["wte.weight"] + 1}, file)
    with pytest.raises(ValueError, match=r"lm_head.weight differs from the word embeddings, but a GPT scores pieces b"):
        load(tmp_path)
    save_file(stored, file)
    for end in ("9", "[9]"):
        (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {end}}}')
        assert load(tmp_path).config.end_id == 9


def test_several_ends_of_a_text_are_logged(tmp_path, caplog):
    write(tmp_path, random_params("GPT2LMHeadModel"), GPT2)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [9, 7]}')
    assert load(tmp_path).config.end_id == GPT2.end_id
    assert f"eos_token_id=[9, 7], and `generate` stops at {GPT2.end_id} only: give it ends=" in caplog.text


def test_rules_of_writing_that_are_not_followed_are_logged(tmp_path, caplog):
    write(tmp_path, random_params("GPT2LMHeadModel"), GPT2)
    (tmp_path / "generation_config.json").write_text('{"num_beams": 3, "max_length": 20, "do_sample": true}')
    load(tmp_path)
    assert "generation_config.json asks for do_sample=True, num_beams=3, which `generate` does not take" in caplog.text


def test_released_files_are_read():
    summary = {"summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True}
    summary |= {"summary_type": "cls_index", "summary_use_proj": True}
    rates = {"attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1}
    sizes = {"n_embd": 768, "n_head": 12, "n_layer": 12, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05}
    gpt2 = {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "bos_token_id": 50256,
        "eos_token_id": 50256, "model_type": "gpt2", "n_ctx": 1024, "n_positions": 1024, "vocab_size": 50257,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    }  # fmt: skip
    assert GptConfig.from_json(gpt2 | sizes | rates | summary) == GptConfig.preset("gpt2")
    gpt1 = {
        "afn": "gelu", "architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", "n_ctx": 512,
        "n_positions": 512, "n_special": 0, "predict_special_tokens": True, "vocab_size": 40478,
    }  # fmt: skip
    assert GptConfig.from_json(gpt1 | sizes | rates | summary) == GptConfig.preset("gpt")
    assert GptConfig.from_json({"model_type": "openai-gpt"}) == GptConfig.preset("gpt")
    assert GptConfig.from_json({"model_type": "gpt2"}) == GptConfig()


def test_every_field_is_read():
    fields = {
        "model_type": "gpt2", "n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 9, "vocab_size": 11,
        "n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-3, "resid_pdrop": 0.2,
        "embd_pdrop": 0.3, "attn_pdrop": 0.4, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True,
        "reorder_and_upcast_attn": True, "initializer_range": 0.5, "eos_token_id": [3], "summary_first_dropout": 0.6,
    }  # fmt: skip
    config = GptConfig.from_json(fields)
    assert config == GptConfig(
        11, 24, 2, 3, 40, 9, activation="relu", norm_eps=1e-3, scale_attention=False, scale_by_layer=True, dropout=0.2,
        embedding_dropout=0.3, attention_dropout=0.4, classifier_dropout=0.6, initializer_range=0.5, pad_id=3, end_id=3,
    )  # fmt: skip
    assert GptConfig.from_json(config.to_huggingface()) == config
    relu = GptConfig.from_json({"model_type": "openai-gpt", "afn": "relu", "eos_token_id": 4, "pad_token_id": 2})
    assert (relu.activation, relu.end_id, relu.pad_id, relu.feed_forward_size) == ("relu", 4, 2, 3072)
    assert GptConfig.from_json(relu.to_huggingface()) == relu
    assert GptConfig.from_json({"model_type": "gpt2", "n_ctx": 128}).max_positions == 128


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"add_cross_attention": True}, "add_cross_attention is True; only False is supported"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False; only True is supported"),
        ({"n_ctx": 7}, "n_ctx is 7 but n_positions is 1024"),
        ({"n_ctx": "abc", "n_positions": None}, "n_ctx is 'abc'; expected a whole number from 1 to 100,000,000"),
        ({"n_ctx": 10**30, "n_positions": None}, "n_ctx is 10000.*; expected a whole number from 1 to 100,000,000"),
        ({"classifier_dropout": "x"}, "classifier_dropout is 'x'; expected a number up to 1e12"),
        ({"model_type": "openai-gpt", "afn": ["gelu"]}, r"afn is \['gelu'\]; expected a text"),
        ({"n_embd": 770}, r"hidden_size 770 cannot be split evenly among num_heads 12"),
        ({"activation_function": "prelu"}, "no activation 'prelu'"),
        ({"eos_token_id": [1, 2]}, r"eos_token_id is \[1, 2\]; only one piece, by its id, can end a text"),
        ({"eos_token_id": 60_000, "pad_token_id": 0}, "end_id is 60000; the vocabulary has the ids 0 to 50256"),
        ({"scale_attn_weights": "no"}, "scale_attn_weights is 'no'; it must be true or false"),
        ({"architectures": ["GPT2DoubleHeadsModel"], "summary_type": "last"}, "summary_type is 'last'; only 'cls_ind"),
        ({"model_type": "openai-gpt", "afn": "tanh"}, "afn is 'tanh'; a GPT-1 has one of gelu, relu, silu, swish"),
        ({"model_type": "openai-gpt", "n_inner": 5}, "n_inner is 5; the feed-forward layers of a GPT-1 have 4"),
        ({"model_type": "openai-gpt", "n_special": 3}, "n_special is 3; only 0 is supported"),
    ],
)
def test_unsupported_configs_are_refused(change, message):
    fields = {"model_type": "gpt2", "n_positions": 1024, "vocab_size": 50257}
    with pytest.raises(ValueError, match=message):
        GptConfig.from_json(fields | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feed_forward_size": 100}, "no GPT-1 with feed_forward_size 100"),
        ({"scale_by_layer": True}, "no GPT-1 with scale_by_layer True"),
        ({"activation": "gelu"}, "no GPT-1 with activation gelu"),
    ],
)
def test_a_gpt1_that_transformers_has_not(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(GPT1, **change).to_huggingface()
    with pytest.raises(ValueError, match=r"embedding_dropout is 1.5; a dropout rate is at least 0 and below 1"):
        GptConfig(embedding_dropout=1.5)
