"""ModernBERT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.modernbert.formats import FORMATS
from bert_elmo_jax.families.modernbert.model import MaskedLM, ModernBert
from bert_elmo_jax.families.pieces import Pieces, piece_objectives

FAMILY = Family(
    name="modernbert",
    called="a ModernBERT",
    config=ModernBertConfig,
    module=ModernBert,
    inputs=Pieces(vocab_size=50_368),
    objectives=piece_objectives("modernbert", "documents", "sentences"),
    heads={"mlm": Head(MaskedLM)},
    task_heads={"tag": Head(pooled=True), "span": Head(pooled=True)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=ModernBertConfig.PRESETS,
)
