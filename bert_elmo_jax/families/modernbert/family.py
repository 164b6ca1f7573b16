"""ModernBERT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family
from bert_elmo_jax.families.modernbert.config import PRESETS, ModernBertConfig
from bert_elmo_jax.families.modernbert.formats import FORMATS
from bert_elmo_jax.families.modernbert.model import MaskedLM, ModernBert
from bert_elmo_jax.lazy_imports import lazy_function

_objective = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")

FAMILY: Family = Family(
    name="modernbert",
    called="a ModernBERT",
    config=ModernBertConfig,
    module=ModernBert,
    inputs="pieces",
    objectives={name: lambda config, model: _objective(FAMILY, config, model) for name in ("documents", "sentences")},
    heads={"mlm": MaskedLM},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    pooler=True,
    pools_pieces=True,
    presets=PRESETS,
    vocab_size=50_368,
)
