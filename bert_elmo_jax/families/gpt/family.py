"""GPT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family
from bert_elmo_jax.families.gpt.config import PRESETS, GptConfig
from bert_elmo_jax.families.gpt.formats import FORMATS
from bert_elmo_jax.families.gpt.model import Gpt, NextPiece
from bert_elmo_jax.lazy_imports import lazy_function

_objective = lazy_function("bert_elmo_jax.families.gpt.objective", "make_objective")

FAMILY = Family(
    name="gpt",
    called="a GPT",
    config=GptConfig,
    module=Gpt,
    inputs="pieces",
    objectives={"documents": _objective, "sentences": _objective},
    heads={"lm": NextPiece},
    tied_heads=("lm",),
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    pooler=True,
    unbiased_heads=("classify",),
    presets=PRESETS,
    vocab_size=50_257,
    causal=lambda config: True,
    decoder=lazy_function("bert_elmo_jax.families.gpt.decoder", "make_decoder"),
)
