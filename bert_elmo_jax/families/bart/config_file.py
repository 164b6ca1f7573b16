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
# Ours and the file's: how texts are written. Lengths of the file count the piece before the first one, too.
WRITING = {"beams": "num_beams", "length_penalty": "length_penalty", "no_repeat_ngram_size": "no_repeat_ngram_size"}
LENGTHS = {"max_new": ("max_new_tokens", "max_length"), "min_new": ("min_new_tokens", "min_length")}
ONLY_THERE = (
    *marian_config.ONLY_THERE, "forced_bos_token_id", "early_stopping", *WRITING.values(), *LENGTHS["max_new"],
    *LENGTHS["min_new"],
)  # fmt: skip


def read_fields(folder: str | Path) -> dict[str, Any]:
    """Return the fields of a folder's `config.json`; `generation_config.json` replaces those about writing."""
    return marian_config.read_fields(folder, ONLY_THERE)


def _read(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    values, problems = marian_config.read_decoder(fields, num_layers)
    forced = fields.get("forced_bos_token_id")
    if forced is None and fields.get("force_bos_token_to_be_generated"):
        forced = fields.get("bos_token_id")
    written = {"forced_start_id": forced} | {ours: fields.get(theirs) for ours, theirs in WRITING.items()}
    for ours, (new, total) in LENGTHS.items():
        written[ours] = fields.get(new)
        if written[ours] is None and (length := fields.get(total)) is not None:
            written[ours] = max(length - 1, 0) if type(length) is int else length
    for name, value in written.items():
        expected = (int, float) if name == "length_penalty" else (int,)
        if value is not None and type(value) not in expected:
            problems.append(f"{name} is {value!r} in the fields about writing; it must be a number")
    if type(layers := values.get("decoder_layers")) is int and layers > MOST_LAYERS:
        problems.append(f"decoder_layers is {layers:,}; at most {MOST_LAYERS:,} are possible")
    stopping = fields.get("early_stopping")
    if stopping not in (None, True, False, "never"):
        problems.append(f"early_stopping is {stopping!r}; it is true, false or 'never'")
    return {**values, **written, "early_stopping": str(stopping or False).lower()}, problems


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
    fields = {"forced_bos_token_id": config.forced_start_id}
    fields |= {theirs: getattr(config, ours) for ours, theirs in WRITING.items()}
    for ours, (_, total) in LENGTHS.items():
        count = getattr(config, ours)
        fields[total] = None if count is None else count + 1
    stopping = config.writing.get("early_stopping", False)
    present = {name: value for name, value in fields.items() if value is not None}
    return marian_config.generation_fields(config) | present | {"early_stopping": stopping}


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
