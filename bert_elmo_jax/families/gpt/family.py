"""GPT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family
from bert_elmo_jax.families.gpt.config import PRESETS, GptConfig
from bert_elmo_jax.families.gpt.model import Gpt, NextPiece
from bert_elmo_jax.families.huggingface_format import huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

FAMILY = Family(
    name="gpt",
    called="a GPT",
    config=GptConfig,
    module=Gpt,
    inputs="pieces",
    objectives={},
    heads={"lm": NextPiece},
    tied_heads=("lm",),
    formats={
        "huggingface": huggingface_format(
            "bert_elmo_jax.families.gpt.huggingface", "gpt2", "openai-gpt", classifiers=()
        )
    },
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
    vocab_size=50_257,
    causal=lambda config: True,
    decoder=lazy_function("bert_elmo_jax.families.gpt.decoder", "make_decoder"),
)
