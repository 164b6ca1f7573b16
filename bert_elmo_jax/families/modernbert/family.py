"""ModernBERT's entry in the registry."""

from typing import Any

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.family import Family, Objective
from bert_elmo_jax.families.modernbert.config import PRESETS, ModernBertConfig
from bert_elmo_jax.families.modernbert.model import MaskedLM, ModernBert
from bert_elmo_jax.lazy_imports import lazy_function

HUGGINGFACE = "bert_elmo_jax.families.modernbert.huggingface"


def _objective(config: Any, model: Any) -> Objective:
    made: Objective = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")(FAMILY, config, model)
    return made


FAMILY = Family(
    name="modernbert",
    called="a ModernBERT",
    config=ModernBertConfig,
    module=ModernBert,
    inputs="pieces",
    objectives={"documents": _objective, "sentences": _objective},
    heads={"mlm": MaskedLM},
    sharding=(
        (r"attention/(query|key|value)/kernel$", P("fsdp", "tensor")),
        (r"attention/(query|key|value)/bias$", P("tensor")),
        (r"attention/output/kernel$", P("tensor", "fsdp")),
        (r"feed_forward/(gate|up)/kernel$", P("fsdp", "tensor")),
        (r"feed_forward/(gate|up)/bias$", P("tensor")),
        (r"feed_forward/down/kernel$", P("tensor", "fsdp")),
        (r"embeddings/word$", P("tensor", "fsdp")),
    ),
    pooler=True,
    presets={f"modernbert-{name}": sizes for name, sizes in PRESETS.items()},
    vocab_size=50_368,
)
