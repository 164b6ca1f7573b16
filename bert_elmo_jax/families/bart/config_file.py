"""The `config.json` and `generation_config.json` of a BART in transformers."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.huggingface_config import MOST_LAYERS, MoreFields
from bert_elmo_jax.families.transformer import marian_config

# Fields of older files that newer versions of transformers do not read: only these values give the same model.
OLD = {
    "static_position_embeddings": False,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "extra_pos_embeddings": 2,
    "do_blenderbot_90_layernorm": False,
}
# The values of transformers for fields that a file lacks.
DEFAULTS = {
    **marian_config.DEFAULTS,
    "vocab_size": 50265,
    "dropout": 0.1,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "forced_eos_token_id": 2,
}
ONLY_THERE = (*marian_config.ONLY_THERE, "forced_bos_token_id")


def read_fields(folder: str | Path) -> dict[str, Any]:
    """Return the fields of a folder's `config.json`; `generation_config.json` replaces those about writing."""
    return marian_config.read_fields(folder, ONLY_THERE)


def _read(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    values, problems = marian_config.read_decoder(fields, num_layers)
    forced = fields.get("forced_bos_token_id")
    if forced is None and fields.get("force_bos_token_to_be_generated"):
        forced = fields.get("bos_token_id")
    if forced is not None and type(forced) is not int:
        problems.append(f"forced_bos_token_id is {forced!r}; it must be the number of a piece")
    if type(layers := values.get("decoder_layers")) is int and layers > MOST_LAYERS:
        problems.append(f"decoder_layers is {layers:,}; at most {MOST_LAYERS:,} are possible")
    return {**values, "forced_start_id": forced}, problems


def _write(config: Any) -> dict[str, Any]:
    fields = marian_config.write_decoder(config)
    del fields["decoder_vocab_size"]
    return fields | {"forced_bos_token_id": config.forced_start_id}


def generation_fields(config: Any) -> dict[str, Any]:
    """Return the fields about writing, for `generation_config.json`.

    >>> from bert_elmo_jax.families.bart.config import BartConfig
    >>> fields = generation_fields(BartConfig(max_new=19, beams=4))
    >>> fields["max_length"], fields["num_beams"], fields["forced_bos_token_id"]
    (20, 4, 0)
    """
    forced = {} if config.forced_start_id is None else {"forced_bos_token_id": config.forced_start_id}
    return marian_config.generation_fields(config) | forced


FILE = dataclasses.replace(
    marian_config.FILE,
    called="a BART",
    model_type="bart",
    names={
        **{ours: theirs for ours, theirs in marian_config.FILE.names.items()
           if ours not in ("share_embeddings", "tie_output")},
        "classifier_dropout": "classifier_dropout",
    },
    architectures={(): "BartForConditionalGeneration", ("classify",): "BartForSequenceClassification"},
    only={"is_encoder_decoder": True, "encoder_layerdrop": 0, "decoder_layerdrop": 0, **OLD},
    harmless=frozenset({"classif_dropout", "_num_labels", "max_length", "add_bias_logits"}),
    more=MoreFields(
        names=(
            *(name for name in marian_config.FILE.more.names if name != "decoder_vocab_size"), *ONLY_THERE,
            "force_bos_token_to_be_generated", "bos_token_id",
        ),
        read=_read,
        write=_write,
    ),
    defaults=DEFAULTS,
)  # fmt: skip
