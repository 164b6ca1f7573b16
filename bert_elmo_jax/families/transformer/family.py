"""The Transformer's entry in the registry."""

from typing import Any

import flax.linen as nn
from jax.sharding import PartitionSpec

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.pairs import Pairs
from bert_elmo_jax.families.transformer.config import PRESETS, TransformerConfig
from bert_elmo_jax.families.transformer.formats import FORMATS
from bert_elmo_jax.families.transformer.model import Transformer, TransformerDecoder
from bert_elmo_jax.lazy_imports import lazy_function

FOLDER = "bert_elmo_jax.families.transformer"


def _decoder_module(config: Any) -> nn.Module:
    return TransformerDecoder(config.target)


def _special_ids(tokenizer: Any) -> dict[str, Any]:
    """A target begins like a text and ends with the piece that ends a text; padding and the first piece only there."""
    end = tokenizer.sep_id
    never = sorted({tokenizer.pad_id, tokenizer.cls_id} - {end})
    return {"start_id": tokenizer.cls_id, "end_ids": (end,), "forbidden_ids": tuple(never)}


FAMILY = Family(
    name="transformer",
    called="a Transformer",
    config=TransformerConfig,
    module=Transformer,
    inputs=Pairs(
        vocab_size=37_000, encoder=lazy_function(f"{FOLDER}.translator", "Translator"), special_ids=_special_ids
    ),
    objectives={"translate": lazy_function(f"{FOLDER}.objective", "translate_objective")},
    heads={"decoder": Head(_decoder_module)},
    formats=FORMATS,
    sharding=(*TRANSFORMER_SHARDING, (r"decoder/output$", PartitionSpec("tensor", "fsdp"))),
    presets=PRESETS,
    sentence_files=False,
    decoder=lazy_function(f"{FOLDER}.decoding", "transformer_decoder"),
)
