"""RoBERTa's entry in the registry."""

from typing import Any

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head, Objective
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.families.roberta.config import PRESETS, RobertaConfig
from bert_elmo_jax.families.roberta.formats import FORMATS
from bert_elmo_jax.families.roberta.model import Roberta
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.nn.transformer import MaskedLM


def _objective(config: Any, model: Any) -> Objective:
    make = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")
    return make(FAMILY, config, model)


FAMILY = Family(
    name="roberta",
    called="a RoBERTa",
    config=RobertaConfig,
    module=Roberta,
    inputs=Pieces(vocab_size=50_265),
    objectives={"sentences": _objective, "documents": _objective},
    heads={"mlm": Head(lambda config: MaskedLM(config, "gelu"))},  # even if the layers have another activation
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
)
