"""The configuration of a Transformer, and Marian's `config.json` and `generation_config.json`."""

import dataclasses
import json
import os

import pytest

from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.marian import generation_fields, read_config

# As released with opus-mt-en-de, with the fields that old versions of transformers wrote.
RELEASED = {
    "_num_labels": 3, "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "attention_dropout": 0.0,
    "bad_words_ids": [[58100]], "bos_token_id": 0, "classif_dropout": 0.0, "classifier_dropout": 0.0, "d_model": 512,
    "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "decoder_layerdrop": 0.0, "decoder_layers": 6,
    "decoder_start_token_id": 58100, "decoder_vocab_size": 58101, "dropout": 0.1, "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048, "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 0,
    "forced_eos_token_id": 0, "gradient_checkpointing": False, "id2label": {"0": "LABEL_0"}, "init_std": 0.02,
    "is_encoder_decoder": True, "label2id": {"LABEL_0": 0}, "max_length": 512, "max_position_embeddings": 512,
    "model_type": "marian", "normalize_before": False, "normalize_embedding": False, "num_beams": 6,
    "num_hidden_layers": 6, "pad_token_id": 58100, "scale_embedding": True, "share_encoder_decoder_embeddings": True,
    "static_position_embeddings": True, "transformers_version": "4.22.0.dev0", "use_cache": True, "vocab_size": 58101,
}  # fmt: skip


def test_the_sizes_of_the_paper():
    base, big = TransformerConfig.preset("base"), TransformerConfig.preset("big")
    assert (base.num_layers, base.hidden_size, base.num_heads, base.feed_forward_size) == (6, 512, 8, 2048)
    assert (big.num_layers, big.hidden_size, big.num_heads, big.feed_forward_size) == (6, 1024, 16, 4096)
    assert (base.dropout, big.dropout) == (0.1, 0.3)


@pytest.mark.skipif("TEST_TYPES" in os.environ, reason="the fields have tuples")
def test_lists_of_ids_are_those_of_tuples():
    """JSON has lists, and a configuration needs a hash, because compiled programs are kept for it."""
    lists, tuples = (TransformerConfig(end_ids=of([3]), forbidden_ids=of([1])) for of in (list, tuple))
    assert lists == tuples and hash(lists) == hash(tuples)


def test_the_decoder_takes_the_encoders_sizes_unless_it_has_its_own():
    config = TransformerConfig(
        70, 32, 3, 4, 20, target_vocab_size=50, decoder_layers=1, decoder_heads=2, decoder_feed_forward_size=40,
        share_embeddings=False, end_ids=(49,), attention="fused",
    )  # fmt: skip
    side = config.target
    assert (side.vocab_size, side.num_layers, side.num_heads, side.feed_forward_size) == (50, 1, 2, 40)
    assert side.causal and not config.causal and side.attention == "reference"
    assert TransformerConfig(70, num_layers=2).target.num_layers == 2


def test_a_released_file_is_read():
    config = TransformerConfig.from_json(RELEASED)
    assert config == TransformerConfig.preset(
        "base", vocab_size=58101, activation="swish", output_bias=True, pad_id=58100, start_id=58100, end_ids=(0,),
        forbidden_ids=(58100,), forced_end_id=0, initializer_range=0.02, max_new=511, beams=6,
    )  # fmt: skip
    again = TransformerConfig.from_json(config.to_huggingface(("decoder",)))
    assert again == dataclasses.replace(config, max_new=None, beams=None)  # which `generation_config.json` holds
    config = TransformerConfig.from_json({"model_type": "marian"})  # as transformers completes it
    assert (config.hidden_size, config.num_layers, config.num_heads, config.feed_forward_size) == (1024, 12, 16, 4096)
    assert config.activation == "gelu" and not config.scale_embeddings and config.max_positions == 1024
    assert (config.pad_id, config.start_id, config.end_ids, config.forced_end_id) == (58100, 58100, (0,), 0)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, ((58100,), 0, (0,), 58100)),
        ({}, ((), None, (0,), 58100)),  # generation_config.json alone decides about these
        (
            {"bad_words_ids": [[7]], "forced_eos_token_id": 5, "eos_token_id": [0, 9], "decoder_start_token_id": 3},
            ((7,), 5, (0, 9), 3),
        ),
    ],
)
def test_generation_config(tmp_path, fields, expected):
    (tmp_path / "config.json").write_text(json.dumps(RELEASED))
    if fields is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(fields))
    config = read_config(tmp_path)
    assert (config.forbidden_ids, config.forced_end_id, config.end_ids, config.start_id) == expected


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_fields_of_writing_that_are_not_followed_are_named(tmp_path, caplog, name):
    fields = {"do_sample": True, "repetition_penalty": 1.2, "num_beam_groups": 1, "suppress_tokens": []}
    (tmp_path / "config.json").write_text(json.dumps(RELEASED))
    (tmp_path / name).write_text(json.dumps((RELEASED if name == "config.json" else {}) | fields))
    read_config(tmp_path)
    expected = f"{name} asks for do_sample=True, repetition_penalty=1.2, which `generate` does not take"
    assert caplog.text.count("asks for") == 1 and expected in caplog.text


def test_renormalize_logits_is_read_and_written(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(RELEASED | {"renormalize_logits": True}))
    config = read_config(tmp_path)
    assert config.renormalize_logits and generation_fields(config)["renormalize_logits"] is True
    generation = tmp_path / "generation_config.json"
    for fields, expected in (({}, False), ({"renormalize_logits": True}, True)):
        generation.write_text(json.dumps(fields))
        assert read_config(tmp_path).renormalize_logits is expected
    assert str(config) == str(dataclasses.replace(config, renormalize_logits=False))  # fingerprints stay
    generation.write_text('{"renormalize_logits": "yes"}')
    with pytest.raises(ValueError, match="renormalize_logits is 'yes'; it is true or false"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bart"}, "model_type is 'bart'; only 'marian' is supported"),
        ({"normalize_before": True}, "normalize_before is True; only False is supported"),
        ({"static_position_embeddings": False}, "static_position_embeddings is False; only True"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm is True; only False"),
        ({"encoder_layerdrop": 0.1}, r"encoder_layerdrop is 0\.1; only 0 is supported"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder is False; only True"),
        ({"forced_bos_token_id": 7}, "forced_bos_token_id is 7; only None is supported"),
        ({"bad_words_ids": [[5, 6]]}, r"bad_words_ids is \[\[5, 6\]\]; only lists of one piece"),
        ({"eos_token_id": "x"}, "eos_token_id is 'x'; expected a whole number"),
        ({"decoder_vocab_size": 7}, "share_encoder_decoder_embeddings is true: one table has one size"),
        ({"decoder_layers": "six"}, "decoder_layers is 'six'; it must be a whole number"),
        ({"num_hidden_layers": 5}, "num_hidden_layers is 5 but encoder_layers is 6"),
        ({"d_model": 516}, r"hidden_size 516 cannot be split evenly among num_heads 8.*d_model"),
        ({"decoder_attention_heads": 7}, "cannot be split evenly among decoder_heads 7"),
        ({"activation_function": "prelu"}, "no activation 'prelu'"),
        ({"decoder_start_token_id": 60000}, "start_id holds 60000; the target's vocabulary has the ids 0 to 58100"),
    ],
)
def test_unsupported_configs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig.from_json(RELEASED | change)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decoder_layers": 0}, "decoder_layers is 0; it must be at least 1"),
        ({"key_size": 0}, "key_size is 0"),
        ({"target_vocab_size": 9}, "target_vocab_size is 9 and vocab_size 37000, but share_embeddings is True"),
        ({"end_ids": ()}, "end_ids is empty"),
        ({"forced_end_id": 37000}, "forced_end_id holds 37000"),
        ({"activation_dropout": 1.0}, r"activation_dropout is 1\.0; a dropout rate"),
        ({"key_size": 16, "value_size": 8, "attention": "fused"}, "needs keys and values of one size"),
        ({"positions": "sinusoid"}, "positions is 'sinusoid'; it is one of sinusoidal, learned"),
        ({"hidden_size": 510}, "cannot be split evenly"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_impossible_fields(fields, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**fields)
