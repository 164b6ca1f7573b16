"""The entry of static vectors in the registry."""

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.family import Family, Head
from bert_elmo_jax.families.static.config import PRESETS, StaticConfig
from bert_elmo_jax.families.static.formats import FORMATS
from bert_elmo_jax.families.static.model import Static, init_static_params
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.lazy_imports import lazy_function

FAMILY = Family(
    name="static",
    called="a table of static vectors",
    config=StaticConfig,
    module=Static,
    inputs=Words(vocab_size=50_000, encoder=lazy_function("bert_elmo_jax.families.static.encoder", "StaticEncoder")),
    objectives={"neighbours": lazy_function("bert_elmo_jax.families.static.objective", "static_objective")},
    heads={"context": Head()},  # made by init
    formats=FORMATS,
    sharding=((r"(embeddings/word|context/embedding)$", P("tensor", "fsdp")),),
    presets=PRESETS,
    init=init_static_params,
)
