"""DistilBERT's entry in the registry."""

from typing import Any

from bert_elmo_jax.families.distilbert.config import PRESETS, DistilBertConfig
from bert_elmo_jax.families.distilbert.formats import FORMATS
from bert_elmo_jax.families.distilbert.model import DistilBert
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head, Objective
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.nn.transformer import MaskedLM


def _objective(config: Any, model: Any) -> Objective:
    make = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")
    return make(FAMILY, config, model)


FAMILY = Family(
    name="distilbert",
    called="a DistilBERT",
    config=DistilBertConfig,
    module=DistilBert,
    inputs=Pieces(),
    objectives={"sentences": _objective, "documents": _objective},
    heads={"mlm": Head(MaskedLM)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
)
