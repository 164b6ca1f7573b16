"""The fields of ModernBERT's `config.json`, in the spellings of transformers 4 (released folders) and 5."""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.families.huggingface_config import ConfigFile, MoreFields, read_theta

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
THETAS = {
    "global_theta": ("full_attention", "global_rope_theta"),
    "local_theta": ("sliding_attention", "local_rope_theta"),
}
LETTERS = {"full_attention": "g", "sliding_attention": "l"}

ARCHITECTURES: dict[tuple[str, ...], str] = {
    (): "ModernBertModel",
    ("mlm",): "ModernBertForMaskedLM",
    ("classify",): "ModernBertForSequenceClassification",
    ("choice",): "ModernBertForMultipleChoice",
    ("tag",): "ModernBertForTokenClassification",
    ("span",): "ModernBertForQuestionAnswering",
}


def read_layers(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    """Return our fields about the kinds of layers and their angles, from either spelling, and a list of problems."""
    problems: list[str] = []
    pattern = _read_pattern(fields, num_layers, problems)
    values: dict[str, Any] = {"attention_pattern": pattern} if pattern else {}
    return values | _read_thetas(fields, problems), problems


def _read_pattern(fields: Mapping[str, Any], num_layers: int, problems: list[str]) -> str:
    """Return the letters of the layers' kinds, as short as they repeat; "" for the default."""
    every, types = fields.get("global_attn_every_n_layers"), fields.get("layer_types")
    by_number = ""
    if every is not None:
        if type(every) is not int or every < 1:
            problems.append(f"global_attn_every_n_layers is {every!r}; it must be a whole number, at least 1")
            return ""
        by_number = "g" + "l" * min(every - 1, num_layers)  # bounded, however large the number is
    if types is None:
        return by_number
    unknown = [types] if not isinstance(types, list) else [kind for kind in types if str(kind) not in LETTERS]
    if unknown:
        problems.append(f"layer_types holds {unknown[0]!r}; it is a list of {' and '.join(LETTERS)}")
        return ""
    letters = "".join(LETTERS[kind] for kind in types)
    if len(letters) != num_layers:
        problems.append(f"layer_types has {len(letters)} entries for {num_layers} layers (num_hidden_layers)")
        return ""
    if by_number and (by_number * num_layers)[:num_layers] != letters:
        problems.append(f"layer_types and global_attn_every_n_layers={every} contradict each other: delete one of them")
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
    thetas: dict[str, float] = {}
    for ours, (kind, old) in THETAS.items():
        theta = read_theta(groups.get(kind), f"rope_parameters.{kind}", {old: fields.get(old)}, problems)
        thetas |= {} if theta is None else {ours: theta}
    if "global_theta" in thetas and "local_rope_theta" in fields and fields["local_rope_theta"] is None:
        thetas.setdefault("local_theta", thetas["global_theta"])  # as transformers 4 reads null
    return thetas


def write_layers(config: Any) -> dict[str, Any]:
    """Return the fields about layers for a `config.json`, in both spellings where the older can say it."""
    names = {letter: kind for kind, letter in LETTERS.items()}
    pattern = shorten_pattern(config.kinds)
    regular = pattern[0] == "g" and "g" not in pattern[1:]
    thetas = {kind: (old, getattr(config, ours)) for ours, (kind, old) in THETAS.items()}
    return {
        **({"global_attn_every_n_layers": len(pattern)} if regular else {}),
        "layer_types": [names[letter] for letter in config.kinds],
        **dict(thetas.values()),
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, (_, theta) in thetas.items()},
    }


FILE = ConfigFile(
    called="a ModernBERT",
    model_type="modernbert",
    names=NAMES,
    architectures=ARCHITECTURES,
    only={"rope_scaling": {}, "partial_rotary_factor": 1.0, "is_causal": False},
    # Speed and memory of another program; positions are rotary for any `position_embedding_type` ("sans_pos").
    harmless=frozenset({
        "position_embedding_type", "deterministic_flash_attn", "reference_compile", "repad_logits_with_grad",
        "sparse_prediction", "sparse_pred_ignore_index",
    }),
    written={"tie_word_embeddings": True},
    more=MoreFields(LAYERS, read_layers, write_layers),
)  # fmt: skip
