"""GPT's entry in the registry."""

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, WeightFormat
from bert_elmo_jax.families.gpt.config import PRESETS, GptConfig
from bert_elmo_jax.families.gpt.model import Gpt, NextPiece
from bert_elmo_jax.families.huggingface_format import huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

_objective = lazy_function("bert_elmo_jax.families.gpt.objective", "make_objective")
OPENAI = "bert_elmo_jax.families.gpt.openai"

FAMILY = Family(
    name="gpt",
    called="a GPT",
    config=GptConfig,
    module=Gpt,
    inputs="pieces",
    objectives={"documents": _objective, "sentences": _objective},
    heads={"lm": NextPiece},
    tied_heads=("lm",),
    formats={
        "huggingface": huggingface_format(
            "bert_elmo_jax.families.gpt.huggingface", "gpt2", "openai-gpt", classifiers=()
        ),
        "openai": WeightFormat(
            owner="OpenAI",
            looks_like="hparams.json with *.index, or params_shapes.json",
            files=lazy_function(OPENAI, "find_files"),
            read_config=lazy_function(OPENAI, "read_config"),
            read_weights=lazy_function(OPENAI, "read_weights"),
            is_file=lazy_function(OPENAI, "is_prefix"),
        ),
    },
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
    vocab_size=50_257,
    causal=lambda config: True,
    decoder=lazy_function("bert_elmo_jax.families.gpt.decoder", "make_decoder"),
)
