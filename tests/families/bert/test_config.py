import dataclasses
import json

import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.nn import activation

GOOGLE = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 512, "num_attention_heads": 12,
    "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip
MULTILINGUAL = GOOGLE | {
    "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128, "pooler_type": "first_token_transform", "vocab_size": 119547,
}  # fmt: skip
# A Korean model's file, as found on the hub.
KOREAN = GOOGLE | {
    "architectures": ["BertForMaskedLM"], "model_type": "bert", "layer_norm_eps": 1e-12, "pad_token_id": 0,
    "position_embedding_type": "absolute", "gradient_checkpointing": False, "use_cache": True, "vocab_size": 32000,
    "tokenizer_class": "BertTokenizer", "embedding_size": 768, "transformers_version": "4.7.0",
    "torch_dtype": "float32", "id2label": {"0": "부정", "1": "긍정"}, "label2id": {"부정": 0, "긍정": 1},
    "classifier_dropout": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("tiny", (2, 128, 2, 512, 30522)),
        ("mini", (4, 256, 4, 1024, 30522)),
        ("small", (4, 512, 8, 2048, 30522)),
        ("medium", (8, 512, 8, 2048, 30522)),
        ("base", (12, 768, 12, 3072, 30522)),
        ("large", (24, 1024, 16, 4096, 30522)),
        ("multilingual", (12, 768, 12, 3072, 119547)),
    ],
)
def test_presets_are_the_released_sizes(name, sizes):
    c = BertConfig.preset(name)
    assert (c.num_layers, c.hidden_size, c.num_heads, c.feed_forward_size, c.vocab_size) == sizes
    assert c.head_size == 64
    with pytest.raises(ValueError, match="no preset 'huge'; there are tiny, mini"):
        BertConfig.preset("huge")


@pytest.mark.parametrize(("fields", "vocab"), [(GOOGLE, 30522), (MULTILINGUAL, 119547), (KOREAN, 32000)])
def test_released_files_are_read(fields, vocab, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields, ensure_ascii=False), encoding="utf-8")
    expected = BertConfig(vocab_size=vocab)
    assert BertConfig.from_json(path) == BertConfig.from_json(str(path)) == BertConfig.from_json(fields) == expected


def test_every_field_is_honoured():
    fields = {
        "vocab_size": 99, "hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 3, "intermediate_size": 7,
        "max_position_embeddings": 11, "type_vocab_size": 4, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0, "classifier_dropout": 0.4,
        "initializer_range": 0.01, "pad_token_id": 1,
    }  # fmt: skip
    config = BertConfig.from_json(fields)
    assert config == BertConfig(
        99, 24, 5, 3, 7, 11, "gelu_new", 0.2, 0.0, 0.4, 0.01, 1, type_vocab_size=4, norm_eps=1e-5
    )
    assert config.head_dropout == 0.4 and BertConfig(dropout=0.3).head_dropout == 0.3


@pytest.mark.parametrize(
    "fields",
    [
        {}, BertConfig.PRESETS["multilingual"], {"activation": "relu", "dropout": 0.0, "type_vocab_size": 16},
        {"norm_eps": 1e-6, "pad_id": 3, "classifier_dropout": 0.2},
    ],
)  # fmt: skip
def test_a_config_json_comes_back_as_it_went(fields):
    config = BertConfig(**fields)
    assert BertConfig.from_json(json.loads(json.dumps(config.to_huggingface(("mlm", "nsp"))))) == config
    of_a_run = dataclasses.replace(config, scan=True, dtype="bfloat16", causal=True)
    assert BertConfig(**json.loads(json.dumps(dataclasses.asdict(of_a_run)))) == of_a_run
    with pytest.raises(ValueError, match="causal=True"):
        of_a_run.to_huggingface()


@pytest.mark.parametrize("name", ["BertModel", "BertForSequenceClassification", "BertForQuestionAnswering"])
def test_an_untied_decoder_is_no_problem_without_a_head_for_words(name):
    fields = BertConfig().to_huggingface() | {"tie_word_embeddings": False}
    assert BertConfig.from_json(fields | {"architectures": [name]}) == BertConfig()
    for architectures in ([name, "BertForMaskedLM"], [], None):
        with pytest.raises(ValueError, match="tie_word_embeddings is False; only True is supported"):
            BertConfig.from_json(fields | {"architectures": architectures})


def test_the_exact_gelu_of_older_files():
    fields = BertConfig().to_huggingface() | {"hidden_act": "gelu_python"}
    assert activation(BertConfig.from_json(fields).activation) is activation("gelu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'; only 'absolute'"),
        ({"is_decoder": True}, "is_decoder is True; only False"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"pruned_heads": {"0": [1, 2]}}, "pruned_heads is {'0': "),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"model_type": "roberta"}, "model_type is 'roberta'; only 'bert'"),
        ({"embedding_size": 128}, "embedding_size is 128 but hidden_size is 768"),
        ({"head_dim": 32}, r"head_dim is 32; .*768 / 12 = 64 elements"),
        ({"attention_head_size": 128}, "attention_head_size is 128"),
        ({"num_attention_heads": 7}, r"hidden_size 768 cannot be split evenly among num_heads 7"),
        ({"hidden_act": "geluu"}, "no activation 'geluu'.*did you mean gelu"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"vocab_size": "many"}, "vocab_size is 'many'; it must be a whole number"),
        ({"hidden_size": 768.5}, "hidden_size is 768.5; it must be a whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True; it must be a whole number"),
        ({"num_hidden_layers": 0}, "num_layers is 0; it must be at least 1"),
        ({"hidden_dropout_prob": 1.5}, "dropout is 1.5"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps is 'tiny'; it must be a number"),
        ({"hidden_act": 3}, "hidden_act is 3; it must be a name"),
        ({"pad_token_id": 40000}, "pad_id is 40000; the vocabulary has the ids 0 to 30521"),
    ],
)
def test_unsupported_settings_are_named_in_the_error(change, message):
    with pytest.raises(ValueError, match=message):
        BertConfig.from_json(GOOGLE | change)


def test_every_problem_is_named_at_once():
    with pytest.raises(ValueError) as error:
        BertConfig.from_json(GOOGLE | {"is_decoder": True, "alibi": True, "head_dim": 3})
    assert all(name in str(error.value) for name in ("is_decoder", "alibi", "head_dim"))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON"), ("[1]", "it holds a list"), ("\xff\xfe", "is not UTF-8")]
)
def test_files_that_are_no_configuration(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        BertConfig.from_json(path)
    with pytest.raises(FileNotFoundError):
        BertConfig.from_json(tmp_path / "absent.json")


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"norm": "sideways"}, "norm is 'sideways'; it is one of post, pre"),
        ({"attention": "flash"}, "attention is 'flash'; it is one of reference, fused"),
        ({"dtype": "float64"}, "dtype is 'float64'; it is one of float32, bfloat16"),
        ({"num_heads": 0}, "num_heads is 0; it must be at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0; a dropout rate is at least 0 and below 1"),
        ({"position": "rotary", "hidden_size": 36}, "heads of size 3, but rotary positions turn them in pairs"),
        ({"rotary_theta": 0.0}, r"rotary_theta is 0.0; it must be above 0"),
    ],
)
def test_impossible_options(fields, message):
    with pytest.raises(ValueError, match=message):
        BertConfig(**fields)


def test_architectures_follow_the_heads():
    assert BertConfig().to_huggingface(("span",))["architectures"] == ["BertForQuestionAnswering"]
    assert BertConfig().to_huggingface(("nsp", "mlm"))["architectures"] == ["BertForPreTraining"]
    assert BertConfig().to_huggingface()["architectures"] == ["BertModel"]
    with pytest.raises(ValueError, match="no BERT with the heads span, tag"):
        BertConfig().to_huggingface(("tag", "span"))
