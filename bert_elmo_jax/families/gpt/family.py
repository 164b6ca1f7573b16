"""GPT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.gpt.config import PRESETS, GptConfig
from bert_elmo_jax.families.gpt.formats import FORMATS
from bert_elmo_jax.families.gpt.model import Gpt, NextPiece
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.lazy_imports import lazy_function

_objective = lazy_function("bert_elmo_jax.families.gpt.objective", "make_objective")

FAMILY = Family(
    name="gpt",
    called="a GPT",
    config=GptConfig,
    module=Gpt,
    inputs=Pieces(vocab_size=50_257),
    objectives={"documents": _objective, "sentences": _objective},
    heads={"lm": Head(NextPiece, tied=True)},
    task_heads={"classify": Head(pooled=True, bias=False)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
    decoder=lazy_function("bert_elmo_jax.families.gpt.decoder", "make_decoder"),
)
