"""BART's entry in the registry."""

from typing import Any

from bert_elmo_jax.families.bart.config import PRESETS, BartConfig
from bert_elmo_jax.families.bart.formats import FORMATS
from bert_elmo_jax.families.bart.model import Bart
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, encoder_depth
from bert_elmo_jax.families.pieces import Pieces
from bert_elmo_jax.lazy_imports import lazy_function

FOLDER = "bert_elmo_jax.families.bart"
BEHIND = 1_000_000  # added to the depths of the decoder's layers


def _special_ids(tokenizer: Any) -> dict[str, Any]:
    """The decoder begins with the piece that ends a text, and writes the pieces around a text, too."""
    end = tokenizer.sep_id
    ids = {"start_id": end, "end_ids": (end,), "forced_start_id": tokenizer.cls_id, "forced_end_id": end}
    return ids | {"forbidden_ids": (tokenizer.pad_id,)}


def _depth_of(path: str) -> int | None:
    """The decoder's layers follow the encoder's, of which no model has so many; `optim.depths` closes the gap."""
    depth = encoder_depth(path.removeprefix("decoder/"))
    return depth + BEHIND if depth and path.startswith("decoder/") else depth


FAMILY = Family(
    name="bart",
    called="a BART",
    config=BartConfig,
    module=Bart,
    inputs=Pieces(
        vocab_size=50_265, encoder=lazy_function(f"{FOLDER}.encoder", "BartEncoder"), special_ids=_special_ids
    ),
    objectives={"denoise": lazy_function(f"{FOLDER}.objective", "denoise_objective")},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=PRESETS,
    depth_of=_depth_of,
    sentence_files=False,
    decoder=lazy_function(f"{FOLDER}.model", "bart_decoder"),
)
