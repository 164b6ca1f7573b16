"""DeBERTa's entry in the registry."""

from typing import Any

from jax.sharding import PartitionSpec

from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.deberta.formats import FORMATS
from bert_elmo_jax.families.deberta.model import Deberta
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head, encoder_depth
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.families.replaced import Generator, Replaced, replaced_objectives
from bert_elmo_jax.nn.transformer import MaskedLM


def _generator(config: Any) -> Generator:
    """Return the generator's parameters; it shares tables with the discriminator, not their norm and projection."""
    return Generator(config, Deberta, MaskedLM, ("norm", "project"))


def _depth_of(path: str) -> int | None:
    return 0 if path.startswith("relative/") else encoder_depth(path)


FAMILY = Family(
    name="deberta",
    called="a DeBERTa",
    config=DebertaConfig,
    module=Deberta,
    inputs=Pieces(vocab_size=128_100),
    objectives={**replaced_objectives("deberta"), **piece_objectives("deberta", "sentences", "documents")},
    heads={"mlm": Head(MaskedLM), "replaced": Head(Replaced), "generator": Head(_generator)},
    formats=FORMATS,
    depth_of=_depth_of,
    sharding=(
        *TRANSFORMER_SHARDING,
        (r"attention/position_(query|key)/kernel$", PartitionSpec("fsdp", "tensor")),
        (r"attention/position_(query|key)/bias$", PartitionSpec("tensor")),
        (r"embeddings/difference$", PartitionSpec("tensor", "fsdp")),
    ),
    presets=DebertaConfig.PRESETS,
)
