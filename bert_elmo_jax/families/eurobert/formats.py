"""EuroBERT as Hugging Face transformers stores it: the fields of its `config.json`, the names of its tensors."""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.families.huggingface_config import (
    USUAL_FIELDS,
    ConfigFile,
    MoreFields,
    class_names,
    read_spelled,
    read_theta,
)
from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.json_values import TEXT

POOLING = ("classifier_pooling", "clf_pooling")  # transformers 5, and released files
USUAL = ("vocab_size", "hidden_size", "num_layers", "num_heads", "feed_forward_size", "max_positions", "activation",
         "initializer_range", "pad_id")  # fmt: skip


def read_more(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    """Return pooling and the base of the rotary angles, each with two spellings in files, and the problems."""
    problems: list[str] = []
    ours = {
        "pooling": read_spelled({name: fields.get(name) for name in POOLING}, TEXT, problems),
        "rotary_theta": read_theta(
            fields.get("rope_parameters"), "rope_parameters", {"rope_theta": fields.get("rope_theta")}, problems
        ),
    }
    return {field: value for field, value in ours.items() if value is not None}, problems


def write_more(config: Any) -> dict[str, Any]:
    """Return the fields in both spellings."""
    rope = {"rope_type": "default", "rope_theta": config.rotary_theta}
    return dict.fromkeys(POOLING, config.pooling) | {"rope_theta": config.rotary_theta, "rope_parameters": rope}


CLASSES = class_names("EuroBert")
FILE = ConfigFile(
    called="a EuroBERT",
    model_type="eurobert",
    names={name: USUAL_FIELDS[name] for name in USUAL}
    | {"key_value_heads": "num_key_value_heads", "norm_eps": "rms_norm_eps", "attention_dropout": "attention_dropout"}
    | {"attention_bias": "attention_bias", "feed_forward_bias": "mlp_bias"},
    architectures={heads: CLASSES[heads] for heads in ((), ("mlm",), ("classify",), ("tag",))},
    only={"tie_word_embeddings": False, "rope_scaling": {}, "is_causal": False},
    harmless=frozenset({"pretraining_tp"}),
    written={"tie_word_embeddings": False},
    more=MoreFields((*POOLING, "rope_theta", "rope_parameters"), read_more, write_more),
    defaults={"pad_token_id": 128_001},
)
WEIGHTS = WeightFile(
    family="eurobert",
    config_file=FILE,
    prefix="model.",
    encoder={"norm": "norm"},
    tables={"embeddings/word": "embed_tokens"},
    layers="layers",
    layer={
        "attention/norm": "input_layernorm",
        **{f"attention/{name}": f"self_attn.{name[0]}_proj" for name in ("query", "key", "value", "output")},
        "feed_forward/norm": "post_attention_layernorm",
        **{f"feed_forward/{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")},
    },
    heads={
        "mlm": {"mlm": "lm_head"},
        "classify": {"encoder/pooler": "dense", "classify": "classifier"},
        "tag": {"tag": "classifier"},
    },
)
FORMATS = {"huggingface": WEIGHTS.format()}
