"""ELECTRA's entry in the registry."""

from typing import Any

from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.electra.formats import FORMATS
from bert_elmo_jax.families.electra.model import Electra, masked_lm
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.families.replaced import Generator, Replaced, replaced_objectives


def _generator(config: Any) -> Generator:
    return Generator(config, Electra, masked_lm)


FAMILY = Family(
    name="electra",
    called="an ELECTRA",
    config=ElectraConfig,
    module=Electra,
    inputs=Pieces(),
    objectives={**replaced_objectives("electra"), **piece_objectives("electra", "sentences", "documents")},
    heads={"mlm": Head(masked_lm), "replaced": Head(Replaced), "generator": Head(_generator)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=ElectraConfig.PRESETS,
)
