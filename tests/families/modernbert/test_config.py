"""ModernBERT's configuration: both spellings of `config.json`, and unsupported settings."""

import json
import math

import pytest

from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.modernbert.family import FAMILY
from bert_elmo_jax.families.modernbert.json_fields import shorten_pattern


@pytest.fixture(scope="module")
def fields(goldens):
    """The fields of a released folder, and the same as transformers 5 writes them."""
    folder = goldens / "modernbert_packed"
    return tuple(json.loads((folder / name).read_text()) for name in ("config.hub.json", "config.json"))


def test_both_spellings_are_one_configuration(fields):
    old, new = map(ModernBertConfig.from_json, fields)
    assert old == new
    assert (old.attention_pattern, old.kinds, old.local_attention) == ("gll", "gllg", 6)
    assert (old.theta("g"), old.theta("l"), old.window("g"), old.window("l")) == (160_000.0, 10_000.0, None, 3)
    assert (old.pad_id, old.head_size, old.head_dropout) == (358, 16, 0.0)


@pytest.mark.parametrize("pattern", ["gll", "l", "lggg", "glgl"])
def test_written_and_read_it_is_the_same(pattern):
    config = ModernBertConfig(
        num_layers=8, attention_pattern=pattern, global_theta=5e4, local_theta=7e3, pooling="mean"
    )
    written = json.loads(json.dumps(config.to_huggingface(("mlm",))))
    assert written["architectures"] == ["ModernBertForMaskedLM"]
    assert ModernBertConfig.from_json(written).kinds == config.kinds
    assert ModernBertConfig.from_json(written).to_huggingface(("mlm",)) == written
    new, old = (
        ("layer_types", "rope_parameters"),
        ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta"),
    )
    for spelling in (new, old):
        less = {name: value for name, value in written.items() if name not in spelling}
        if pattern == "gll" or "layer_types" in less:
            assert ModernBertConfig.from_json(less).kinds == config.kinds
            assert ModernBertConfig.from_json(less).local_theta == 7e3


def test_presets():
    base, large = (ModernBertConfig.preset(name) for name in ("base", "large"))
    assert base.pooling == large.pooling == "mean"
    assert (base.num_layers, base.hidden_size, base.num_heads, base.feed_forward_size) == (22, 768, 12, 1152)
    assert (large.num_layers, large.hidden_size, large.num_heads, large.feed_forward_size) == (28, 1024, 16, 2624)
    assert base.kinds == "gll" * 7 + "g" and (base.vocab_size, base.max_positions, base.pad_id) == (
        50_368,
        8192,
        50_283,
    )
    # Millions of parameters, embeddings included, as their names say.
    sizes = {"ettin-17m": 17, "ettin-32m": 32, "ettin-68m": 68, "ettin-150m": 149, "ettin-400m": 395, "ettin-1b": 1028}
    for name, millions in (sizes | {"mmbert-small": 140, "mmbert-base": 307}).items():
        shapes = param_shapes(FAMILY, ModernBertConfig.preset(name), pooler=False)
        assert round(sum(math.prod(shape) for shape in shapes.values()) / 1e6) == millions
    with pytest.raises(ValueError, match=r"no preset 'bse'.*did you mean base"):
        ModernBertConfig.preset("bse")


def test_released_relatives_say_that_they_have_no_embeddings_of_positions():
    config = ModernBertConfig.preset("mmbert-small")
    written = config.to_huggingface(("mlm",)) | {"position_embedding_type": "sans_pos"}
    assert ModernBertConfig.from_json(written) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; only 'modernbert' is supported"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False; only True is supported"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling is {'rope_type': 'yarn'}; only {} is supported"),
        ({"classifier_pooling": "max"}, "classifier_pooling is 'max'; it is one of cls, mean"),
        ({"hidden_activation": "prelu"}, "no activation 'prelu'"),
        ({"attention_bias": "no"}, "attention_bias is 'no'; it must be true or false"),
        ({"local_attention": 6.5}, "local_attention is 6.5; it must be a whole number"),
        ({"local_attention": -1}, "local_attention is -1; it must be at least 1"),
        ({"global_attn_every_n_layers": 0}, "global_attn_every_n_layers is 0; it must be a whole number, at least 1"),
        ({"global_attn_every_n_layers": 2}, "layer_types and global_attn_every_n_layers=2 contradict each other"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries for 4 layers"),
        ({"layer_types": ["full_attention", {}, None, []]}, "layer_types holds {}; it is a list of full_att"),
        ({"layer_types": ["chunked_attention"] * 4}, "layer_types holds 'chunked_attention'; it is a list of full_att"),
        ({"local_rope_theta": 5.0}, "local_rope_theta is 5.0 but rope_parameters.sliding_attention.rope_theta is 1"),
        ({"global_rope_theta": [1]}, "global_rope_theta is [1]; it must be a number up to 1e12"),
        ({"global_rope_theta": True}, "global_rope_theta is True; it must be a number up to 1e12"),
        ({"rope_parameters": {"rope_theta": 1e4}}, "it is an object with full_attention and sliding_attention"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}},
            "rope_type of rope_parameters.full_attention is 'linear'; only 'default' is supported",
        ),
        (
            {"rope_parameters": {"full_attention": {"factor": 2.0}}},
            "factor of rope_parameters.full_attention is 2.0; it has no known meaning",
        ),
        (
            {"head_dim": 8},
            "head_dim is 8; a head of ModernBERT has hidden_size / num_attention_heads = 32 / 2 = 16 elem",
        ),
        ({"num_attention_heads": 3}, "hidden_size 32 cannot be split evenly among num_heads 3"),
        ({"pad_token_id": 360}, "pad_id is 360; the vocabulary has the ids 0 to 359"),
        ({"mlp_dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_unsupported_configs_are_refused(fields, change, message):
    with pytest.raises(ValueError) as error:
        ModernBertConfig.from_json({**fields[1], **change})
    assert message in str(error.value)


def test_pieces_seen():
    config = ModernBertConfig(num_layers=4, local_attention=6)
    assert [config.pieces_seen(length) for length in (5, 100)] == [20, 214]


def test_null_is_a_missing_field(fields):
    old = {**fields[0], "pad_token_id": 358, "local_rope_theta": None, "rope_scaling": None, "layer_types": None}
    assert ModernBertConfig.from_json(old).local_theta == 160_000.0  # as transformers 4 reads it
    del old["local_rope_theta"]
    assert ModernBertConfig.from_json(old).local_theta == 10_000.0


def test_pattern_by_hand():
    with pytest.raises(ValueError, match="attention_pattern is 'gx'; it has a letter per layer"):
        ModernBertConfig(attention_pattern="gx")
    assert shorten_pattern("llll") == "l" and shorten_pattern("gllgll") == "gll"


def test_heads_that_transformers_lacks():
    with pytest.raises(ValueError, match="transformers has no ModernBERT with the heads mlm, nsp"):
        ModernBertConfig().to_huggingface(("mlm", "nsp"))
