"""BERT's entry in the registry."""

from collections.abc import Callable
from pathlib import Path

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.bert.config import PRESETS, BertConfig
from bert_elmo_jax.families.bert.model import Bert, MaskedLM, NextSentence
from bert_elmo_jax.families.family import Family, Objective, WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.huggingface_files import ELSEWHERE, WEIGHTS

HUGGINGFACE, GOOGLE = "bert_elmo_jax.families.bert.huggingface", "bert_elmo_jax.families.bert.google"
CLASSIFIERS = ("classify", "choice", "tag")  # a file does not say which of them its classifier is


def _objective(pairs: bool) -> Callable[..., Objective]:
    make = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")
    return lambda config, model: make(FAMILY, config, model, pairs)


def _advice(folder: Path) -> str:
    found = [name for name in ELSEWHERE if (folder / name).exists()]
    return f"{', '.join(found)} is not supported: convert it with transformers." if found else ""


FAMILY = Family(
    name="bert",
    called="a BERT",
    config=BertConfig,
    module=Bert,
    inputs="pieces",
    objectives={name: _objective(name in ("nsp", "sop")) for name in ("nsp", "sop", "sentences", "documents")},
    heads={"mlm": MaskedLM, "nsp": NextSentence},
    formats={
        "huggingface": WeightFormat(
            owner="Hugging Face",
            looks_like=", ".join(WEIGHTS),
            files=lambda folder: [name for name in WEIGHTS if (folder / name).is_file()],
            read_config=lazy_function(HUGGINGFACE, "read_config"),
            read_weights=lazy_function(HUGGINGFACE, "read_weights"),
            write=lazy_function(HUGGINGFACE, "write"),
            classifiers=CLASSIFIERS,
            advice=_advice,
        ),
        "google": WeightFormat(
            owner="Google",
            looks_like="a TensorFlow checkpoint, *.index",
            files=lambda folder: sorted(index.name for index in folder.glob("*.index")),
            read_config=lazy_function(GOOGLE, "read_config"),
            read_weights=lazy_function(GOOGLE, "read_weights"),
            classifiers=CLASSIFIERS,
            is_file=lazy_function(GOOGLE, "is_prefix"),
        ),
    },
    sharding=(
        (r"attention/(query|key|value)/kernel$", P("fsdp", "tensor")),
        (r"attention/(query|key|value)/bias$", P("tensor")),
        (r"attention/output/kernel$", P("tensor", "fsdp")),
        (r"feed_forward/up/kernel$", P("fsdp", "tensor")),
        (r"feed_forward/up/bias$", P("tensor")),
        (r"feed_forward/down/kernel$", P("tensor", "fsdp")),
        (r"embeddings/(word|position)$", P("tensor", "fsdp")),
    ),
    pooler=True,
    presets=PRESETS,
    causal=lambda config: config.attention == "causal",
)
