"""BERT's entry in the registry."""

from collections.abc import Callable

from bert_elmo_jax.families.bert.config import PRESETS, BertConfig
from bert_elmo_jax.families.bert.model import Bert, MaskedLM, NextSentence
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Objective, WeightFormat
from bert_elmo_jax.families.huggingface_format import CLASSIFIERS, huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

GOOGLE = "bert_elmo_jax.families.bert.google"


def _objective(pairs: bool) -> Callable[..., Objective]:
    make = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")
    return lambda config, model: make(FAMILY, config, model, pairs)


FAMILY = Family(
    name="bert",
    called="a BERT",
    config=BertConfig,
    module=Bert,
    inputs="pieces",
    objectives={name: _objective(name in ("nsp", "sop")) for name in ("nsp", "sop", "sentences", "documents")},
    heads={"mlm": MaskedLM, "nsp": NextSentence},
    formats={
        "huggingface": huggingface_format("bert_elmo_jax.families.bert.huggingface", "bert", ""),
        "google": WeightFormat(
            owner="Google",
            looks_like="a TensorFlow checkpoint, *.index",
            files=lazy_function(GOOGLE, "find_files"),
            read_config=lazy_function(GOOGLE, "read_config"),
            read_weights=lazy_function(GOOGLE, "read_weights"),
            classifiers=CLASSIFIERS,
            is_file=lazy_function(GOOGLE, "is_prefix"),
        ),
    },
    sharding=TRANSFORMER_SHARDING,
    pooled_heads=("nsp",),
    pooler=True,
    presets=PRESETS,
    causal=lambda config: config.causal,
)
