"""BERT's entry in the registry."""

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.formats import FORMATS
from bert_elmo_jax.families.bert.model import Bert
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.nn.transformer import MaskedLM, NextSentence

FAMILY = Family(
    name="bert",
    called="a BERT",
    config=BertConfig,
    module=Bert,
    inputs=Pieces(),
    objectives=piece_objectives("bert", "nsp", "sop", "sentences", "documents"),
    heads={"mlm": Head(MaskedLM), "nsp": Head(NextSentence, pooled=True)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=BertConfig.PRESETS,
)
