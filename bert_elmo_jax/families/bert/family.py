"""BERT's entry in the registry."""

from collections.abc import Callable

from bert_elmo_jax.families.bert.config import PRESETS, BertConfig
from bert_elmo_jax.families.bert.formats import FORMATS
from bert_elmo_jax.families.bert.model import Bert, MaskedLM, NextSentence
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head, Objective
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.lazy_imports import lazy_function


def _objective(pairs: bool) -> Callable[..., Objective]:
    make = lazy_function("bert_elmo_jax.families.piece_objective", "piece_objective")
    return lambda config, model: make(FAMILY, config, model, pairs)


FAMILY = Family(
    name="bert",
    called="a BERT",
    config=BertConfig,
    module=Bert,
    inputs=Pieces(),
    objectives={name: _objective(name in ("nsp", "sop")) for name in ("nsp", "sop", "sentences", "documents")},
    heads={"mlm": Head(MaskedLM), "nsp": Head(NextSentence, pooled=True)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
)
