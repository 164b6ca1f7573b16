"""The fields of ModernBERT's `config.json`, in the spellings of transformers 4 (released folders) and 5."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from bert_elmo_jax.did_you_mean import did_you_mean

# Our name -> theirs.
NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "feed_forward_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "local_attention": "local_attention",
    "activation": "hidden_activation",
    "head_activation": "classifier_activation",
    "norm_eps": "norm_eps",
    "attention_bias": "attention_bias",
    "feed_forward_bias": "mlp_bias",
    "norm_bias": "norm_bias",
    "head_bias": "classifier_bias",
    "decoder_bias": "decoder_bias",
    "pooling": "classifier_pooling",
    "dropout": "mlp_dropout",
    "embedding_dropout": "embedding_dropout",
    "attention_dropout": "attention_dropout",
    "classifier_dropout": "classifier_dropout",
    "initializer_range": "initializer_range",
    "initializer_cut": "initializer_cutoff_factor",
    "pad_id": "pad_token_id",
}
# Fields about the kinds of layers and their rotary angles.
LAYERS = ("global_attn_every_n_layers", "layer_types", "global_rope_theta", "local_rope_theta", "rope_parameters")
THETAS = {"global_theta": ("full_attention", "global_rope_theta"), "local_theta": ("sliding_attention", "local_rope_theta")}
LETTERS = {"full_attention": "g", "sliding_attention": "l"}

# Fields that change the model, with the only supported value (a missing field is fine too).
ONLY: dict[str, Any] = {
    "model_type": "modernbert",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": {},
    "rope_scaling": {},
    "partial_rotary_factor": 1.0,
    "is_causal": False,
}

# Fields that do not change the numbers: bookkeeping, tokenizer, task labels (read by the weight format), memory and
# speed of another program. ModernBERT ignores `position_embedding_type`, which released folders have.
HARMLESS = frozenset(
    """
    architectures _name_or_path name_or_path _commit_hash transformers_version torch_dtype dtype model_max_length
    tokenizer_class problem_type num_labels id2label label2id finetuning_task task_specific_params return_dict
    use_return_dict output_attentions output_hidden_states gradient_checkpointing use_cache chunk_size_feed_forward
    torchscript attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal
    auto_map bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id position_embedding_type
    deterministic_flash_attn reference_compile repad_logits_with_grad sparse_prediction sparse_pred_ignore_index
    """.split()
)

ARCHITECTURES: dict[tuple[str, ...], str] = {
    (): "ModernBertModel",
    ("mlm",): "ModernBertForMaskedLM",
    ("classify",): "ModernBertForSequenceClassification",
    ("choice",): "ModernBertForMultipleChoice",
    ("tag",): "ModernBertForTokenClassification",
    ("span",): "ModernBertForQuestionAnswering",
}


def read_fields(fields: Mapping[str, Any], config: type[Any], where: str) -> dict[str, Any]:
    """Return the values of a configuration's fields; raise one error for all fields that cannot be honoured."""
    defaults = {field.name: field for field in dataclasses.fields(config)}
    values: dict[str, Any] = {}
    problems = [
        f"{name} is {fields[name]!r}; only {wanted!r} is supported"
        for name, wanted in ONLY.items()
        if fields.get(name) is not None and fields[name] != wanted
    ]
    for ours, theirs in NAMES.items():
        if fields.get(theirs) is not None:
            value, wanted = _typed(defaults[ours], fields[theirs])
            values[ours] = value
            problems += [f"{theirs} is {value!r}; it must be {wanted}"] if wanted else []
    if not problems:
        sizes = {name: values.get(name, field.default) for name, field in defaults.items()}
        problems += _read_head_size(fields, sizes)
        pattern = _read_pattern(fields, sizes["num_layers"], problems)
        values |= {"attention_pattern": pattern} if pattern else {}
        values |= _read_thetas(fields, problems)
    known = {*NAMES.values(), *LAYERS, *ONLY, "head_dim"}
    for name in sorted(set(fields) - known - HARMLESS):
        hint = did_you_mean(name, sorted(known))
        problems.append(f"{name} is {fields[name]!r}, a field of unknown meaning{hint}")
    if problems:
        raise ValueError(f"{where} does not describe a ModernBERT that can be honoured:\n- " + "\n- ".join(problems))
    return values


def _typed(field: dataclasses.Field[Any], value: Any) -> tuple[Any, str]:
    """Return a value in the type of a field, and what it must be if it cannot have that type."""
    if field.type is bool:
        return value, "" if isinstance(value, bool) else "true or false"
    whole = isinstance(value, int) and not isinstance(value, bool)
    if field.type is int:
        return value, "" if whole else "a whole number"
    if field.type is float:
        number = whole or isinstance(value, float)
        return float(value) if number else value, "" if number else "a number"
    if choices := get_args(field.type):
        return value, "" if value in choices else f"one of {', '.join(choices)}"
    return value, "" if isinstance(value, str) else "a name"


def _read_head_size(fields: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[str]:
    size, width, heads = fields.get("head_dim"), sizes["hidden_size"], sizes["num_heads"]
    if size is None or size * heads == width:
        return []
    return [f"head_dim is {size!r}; a head has hidden_size / num_attention_heads = {width} / {heads} elements"]


def _read_pattern(fields: Mapping[str, Any], num_layers: int, problems: list[str]) -> str:
    """Return the letters of the layers' kinds, as short as they repeat; "" for the default."""
    every, types = fields.get("global_attn_every_n_layers"), fields.get("layer_types")
    by_number = ""
    if every is not None:
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            problems.append(f"global_attn_every_n_layers is {every!r}; it must be a whole number, at least 1")
            return ""
        by_number = "g" + "l" * (every - 1)
    if types is None:
        return by_number
    unknown = [kind for kind in types if kind not in LETTERS] if isinstance(types, list) else [types]
    if unknown:
        problems.append(f"layer_types holds {unknown[0]!r}; it is a list of {' and '.join(LETTERS)}")
        return ""
    letters = "".join(LETTERS[kind] for kind in types)
    if len(letters) != num_layers:
        problems.append(f"layer_types has {len(letters)} entries for {num_layers} layers (num_hidden_layers)")
        return ""
    if by_number and (by_number * num_layers)[:num_layers] != letters:
        problems.append(
            f"layer_types and global_attn_every_n_layers={every} contradict each other: delete one of them"
        )
    return shorten_pattern(letters)


def shorten_pattern(letters: str) -> str:
    """Return the shortest pattern whose repetition gives these letters.

    >>> shorten_pattern("gllgllg"), shorten_pattern("glg"), shorten_pattern("lgg")
    ('gll', 'gl', 'lgg')
    """
    sizes = range(1, len(letters) + 1)
    return next(letters[:size] for size in sizes if (letters[:size] * len(letters))[: len(letters)] == letters)


def _read_thetas(fields: Mapping[str, Any], problems: list[str]) -> dict[str, float]:
    """Return the bases of the rotary angles, from either spelling."""
    groups = fields.get("rope_parameters") or {}
    if not isinstance(groups, Mapping) or set(groups) - set(LETTERS):
        problems.append(f"rope_parameters is {groups!r}; it is an object with {' and '.join(LETTERS)}")
        return {}
    found: dict[str, float] = {}
    for ours, (kind, old) in THETAS.items():
        group = groups.get(kind) or {}
        allowed: dict[str, Any] = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
        problems += [
            f"{name} of rope_parameters.{kind} is {value!r}; "
            + (f"only {allowed[name]!r} is supported" if name in allowed else "it has no known meaning")
            for name, value in group.items()
            if name != "rope_theta" and value is not None and value != allowed.get(name)
        ]
        given = {name: value for name, value in ((f"rope_parameters.{kind}.rope_theta", group.get("rope_theta")),
                 (old, fields.get(old))) if value is not None}  # fmt: skip
        wrong = [name for name, value in given.items() if type(value) not in (int, float)]
        problems += [f"{name} is {given[name]!r}; it must be a number" for name in wrong]
        if len(set(given.values())) > 1:
            problems.append(" but ".join(f"{name} is {value!r}" for name, value in given.items()) + ": delete one of them")
        elif given and not wrong:
            found[ours] = float(next(iter(given.values())))
    if "global_theta" in found and "local_rope_theta" in fields and fields["local_rope_theta"] is None:
        found.setdefault("local_theta", found["global_theta"])  # as transformers 4 reads null
    return found


def write_layers(kinds: str, global_theta: float, local_theta: float) -> dict[str, Any]:
    """Return the fields about layers for a `config.json`, in both spellings where the older can say it."""
    names = {letter: kind for kind, letter in LETTERS.items()}
    thetas = {"full_attention": global_theta, "sliding_attention": local_theta}
    pattern = shorten_pattern(kinds)
    regular = pattern[0] == "g" and "g" not in pattern[1:]
    return {
        **({"global_attn_every_n_layers": len(pattern)} if regular else {}),
        "layer_types": [names[letter] for letter in kinds],
        "global_rope_theta": global_theta,
        "local_rope_theta": local_theta,
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()},
    }
