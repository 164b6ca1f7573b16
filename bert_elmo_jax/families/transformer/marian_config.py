"""The `config.json` and `generation_config.json` of a Marian model in transformers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.huggingface_config import READ_FIELDS, ConfigFile, MoreFields
from bert_elmo_jax.files import read_json
from bert_elmo_jax.generation.file_rules import warn_of_ignored

# The decoder's fields: ours, the file's, and the encoder's in the file.
DECODER = (
    ("decoder_layers", "decoder_layers", "encoder_layers"),
    ("decoder_heads", "decoder_attention_heads", "encoder_attention_heads"),
    ("decoder_feed_forward_size", "decoder_ffn_dim", "encoder_ffn_dim"),
    ("target_vocab_size", "decoder_vocab_size", "vocab_size"),
)
# Fields of older files that newer versions of transformers do not read: only these values give the same model.
OLD = {
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "force_bos_token_to_be_generated": False,
}
# The values of transformers for fields that a file lacks.
DEFAULTS = {
    "vocab_size": 58101,
    "max_position_embeddings": 1024,
    "d_model": 1024,
    "activation_function": "gelu",
    "init_std": 0.02,
    "scale_embedding": False,
    "pad_token_id": 58100,
    "decoder_start_token_id": 58100,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}
DEFAULTS |= {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (
    ("layers", 12), ("ffn_dim", 4096), ("attention_heads", 16))}  # fmt: skip
GENERATION = ("decoder_start_token_id", "eos_token_id", "forced_eos_token_id", "bad_words_ids")
# Ours and the file's: how texts are written. Lengths of the file count the piece before the first one, too.
WRITING = {"beams": "num_beams", "length_penalty": "length_penalty", "no_repeat_ngram_size": "no_repeat_ngram_size"}
LENGTHS = {"max_new": ("max_new_tokens", "max_length"), "min_new": ("min_new_tokens", "min_length")}
# Fields whose absence from `generation_config.json` means that generation does without.
ONLY_THERE = (
    "forced_eos_token_id", "bad_words_ids", "early_stopping", "renormalize_logits", *WRITING.values(),
    *LENGTHS["max_new"], *LENGTHS["min_new"],
)  # fmt: skip


def read_fields(folder: str | Path, only_there: tuple[str, ...] = ONLY_THERE) -> dict[str, Any]:
    """Return the fields of a folder's `config.json`; `generation_config.json` replaces the fields of generation.

    Fields that are `only_there` are None if that file exists and lacks them.
    """
    folder = Path(folder)
    fields = read_json(folder / "config.json", fields=READ_FIELDS)
    size, start = (fields.get(name) for name in ("vocab_size", "decoder_start_token_id"))
    if isinstance(size, int) and isinstance(start, int) and start >= max(size, fields.get("decoder_vocab_size") or 0):
        raise ValueError(f"The configuration: decoder_start_token_id is {start}, but there are {size:,} pieces")
    path = folder / "generation_config.json"
    if not path.is_file():
        warn_of_ignored(fields, folder / "config.json")
        return fields
    generation = read_json(path, fields=READ_FIELDS)
    warn_of_ignored(generation, path)
    names = (*GENERATION, *only_there)
    fields |= {name: generation[name] for name in names if generation.get(name) is not None}
    return fields | {name: None for name in only_there if generation.get(name) is None}


def read_decoder(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    """Return our fields of the decoder and of what it writes, and the problems of the file's fields."""
    values: dict[str, Any] = {"output_bias": True}
    problems: list[str] = []
    for ours, theirs, encoder in DECODER:
        size = fields.get(theirs)
        if size is None or size == fields.get(encoder):
            continue
        if type(size) is not int:
            problems.append(f"{theirs} is {size!r}; it must be a whole number")
        elif theirs == "decoder_vocab_size" and fields.get("share_encoder_decoder_embeddings", True):
            problems.append(
                f"decoder_vocab_size is {size} and vocab_size {fields.get(encoder)}, but "
                "share_encoder_decoder_embeddings is true: one table has one size"
            )
        else:
            values[ours] = size
    if fields.get("num_hidden_layers", num_layers) != num_layers:
        problems.append(f"num_hidden_layers is {fields['num_hidden_layers']!r} but encoder_layers is {num_layers}")
    ends = fields.get("eos_token_id")
    values["end_ids"] = tuple(ends) if isinstance(ends, list) else (ends,)
    forced = fields.get("forced_eos_token_id")
    values["forced_end_id"] = forced[0] if isinstance(forced, list) and len(forced) == 1 else forced
    banned = fields.get("bad_words_ids") or []
    if not isinstance(banned, list) or not all(isinstance(piece, list) and len(piece) == 1 for piece in banned):
        problems.append(f"bad_words_ids is {banned!r}; only lists of one piece each are supported")
    else:
        values["forbidden_ids"] = tuple(piece[0] for piece in banned)
    for name, ids in (("eos_token_id", values["end_ids"]), ("forced_eos_token_id", (values["forced_end_id"],)),
                      ("bad_words_ids", values.get("forbidden_ids", ()))):  # fmt: skip
        if not all(type(piece) is int or (piece is None and name == "forced_eos_token_id") for piece in ids):
            problems.append(f"{name} is {fields.get(name)!r}; it must be the number of a piece")
    written, wrong = read_writing(fields)
    return values | written, problems + wrong


def read_writing(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return our fields of how texts are written, and the problems of the file's.

    >>> written, _ = read_writing({"num_beams": 4, "max_length": 512})
    >>> written["beams"], written["max_new"], "early_stopping" in written
    (4, 511, False)
    """
    problems: list[str] = []
    written = {ours: fields.get(theirs) for ours, theirs in WRITING.items()}
    for ours, (new, total) in LENGTHS.items():
        written[ours] = fields.get(new)
        if written[ours] is None and (length := fields.get(total)) is not None:
            written[ours] = max(length - 1, 0) if type(length) is int else length
    for name, value in written.items():
        expected = (int, float) if name == "length_penalty" else (int,)
        if value is not None and type(value) not in expected:
            problems.append(f"{name} is {value!r} in the fields about writing; it must be a number")
    stopping = fields.get("early_stopping")
    if stopping not in (None, True, False, "never"):
        problems.append(f"early_stopping is {stopping!r}; it is true, false or 'never'")
    renormalises = fields.get("renormalize_logits")
    if renormalises not in (None, True, False):
        problems.append(f"renormalize_logits is {renormalises!r}; it is true or false")
    written["renormalize_logits"] = bool(renormalises)
    return written | ({"early_stopping": str(stopping).lower()} if stopping else {}), problems


def write_decoder(config: Any) -> dict[str, Any]:
    """Return the file's fields of the decoder and of what it writes."""
    target = config.target
    return {
        "decoder_layers": target.num_layers,
        "decoder_attention_heads": target.num_heads,
        "decoder_ffn_dim": target.feed_forward_size,
        "decoder_vocab_size": target.vocab_size,
        **special_pieces(config),
    }


def special_pieces(config: Any) -> dict[str, Any]:
    """Return the fields about pieces that begin or end a text or never occur in it; both files have these fields."""
    return {
        "decoder_start_token_id": config.start_id,
        "pad_token_id": config.pad_id,
        "eos_token_id": config.end_ids[0] if len(config.end_ids) == 1 else list(config.end_ids),
        "forced_eos_token_id": config.forced_end_id,
        "bad_words_ids": [[number] for number in config.forbidden_ids] or None,
    }


def generation_fields(config: Any) -> dict[str, Any]:
    """Return the fields about writing, for `generation_config.json`.

    >>> from bert_elmo_jax.families.transformer.config import TransformerConfig
    >>> fields = generation_fields(TransformerConfig(forbidden_ids=(7,), beams=6))
    >>> fields["bad_words_ids"], fields["num_beams"], "max_length" in fields
    ([[7]], 6, False)
    """
    written = {theirs: getattr(config, ours) for ours, theirs in WRITING.items()}
    for ours, (_, total) in LENGTHS.items():
        count = getattr(config, ours)
        written[total] = None if count is None else count + 1
    present = {name: value for name, value in written.items() if value is not None}
    present |= {"renormalize_logits": True} if config.renormalize_logits else {}
    return special_pieces(config) | present | {"early_stopping": config.writing.get("early_stopping", False)}


FILE = ConfigFile(
    called="a Marian model",
    model_type="marian",
    names={
        "vocab_size": "vocab_size",
        "hidden_size": "d_model",
        "num_layers": "encoder_layers",
        "num_heads": "encoder_attention_heads",
        "feed_forward_size": "encoder_ffn_dim",
        "max_positions": "max_position_embeddings",
        "scale_embeddings": "scale_embedding",
        "share_embeddings": "share_encoder_decoder_embeddings",
        "tie_output": "tie_word_embeddings",
        "activation": "activation_function",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation_dropout": "activation_dropout",
        "initializer_range": "init_std",
        "pad_id": "pad_token_id",
        "start_id": "decoder_start_token_id",
    },
    architectures={("decoder",): "MarianMTModel"},
    only={
        "is_encoder_decoder": True,
        "encoder_layerdrop": 0,
        "decoder_layerdrop": 0,
        "forced_bos_token_id": None,
        **OLD,
    },
    harmless=frozenset({"classif_dropout", "classifier_dropout", "extra_pos_embeddings", "_num_labels", "max_length"}),
    written={"is_encoder_decoder": True},
    more=MoreFields(
        names=(
            "decoder_layers",
            "decoder_attention_heads",
            "decoder_ffn_dim",
            "decoder_vocab_size",
            "num_hidden_layers",
            "eos_token_id",
            *ONLY_THERE,
        ),
        read=read_decoder,
        write=write_decoder,
    ),
    defaults=DEFAULTS,
    # Without a deviation of its own, a model says nothing about how it began.
    to_theirs=lambda fields: {name: value for name, value in fields.items() if value is not None},
)
