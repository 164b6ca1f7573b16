"""The fields of DeBERTa's `config.json`, of released files and as transformers 5 writes them."""

from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, MoreFields, class_names

NAMES = USUAL_FIELDS | {
    "model_type": "model_type",
    "embedding_size": "embedding_size",
    "absolute_positions": "position_biased_input",
    "position_buckets": "position_buckets",
    "max_relative_positions": "max_relative_positions",
    "share_att_key": "share_att_key",
    "conv_kernel_size": "conv_kernel_size",
    "conv_groups": "conv_groups",
    "conv_activation": "conv_act",
    "pooler_activation": "pooler_hidden_act",
    "classifier_dropout": "cls_dropout",
    "legacy": "legacy",
}
SECOND = ("position_buckets", "share_att_key", "conv_kernel_size", "conv_groups", "conv_act")  # not of version 1
TERMS = ("c2p", "p2c")
# The sizes that transformers assumes for fields that a file lacks, where they differ from ours.
SIZES = {
    "deberta": {"vocab_size": 50_265},
    "deberta-v2": {"hidden_size": 1536, "num_layers": 24, "num_heads": 24, "feed_forward_size": 6144},
}


def read_relative(fields: Mapping[str, Any], num_layers: int) -> tuple[dict[str, Any], list[str]]:
    """Return our fields about relative positions, sizes that the file lacks, and a list of problems."""
    problems: list[str] = []
    stored, relative = fields.get("pos_att_type") or [], fields.get("relative_attention")
    names = stored.lower().split("|") if isinstance(stored, str) else stored
    names = [str(name).strip() for name in names] if isinstance(names, list) else [repr(names)]
    if set(names) - set(TERMS):
        problems.append(f"pos_att_type is {stored!r}; only {' and '.join(TERMS)} are supported")
    if bool(relative) != bool(names):
        problems.append(
            f"relative_attention is {relative!r} and pos_att_type {stored!r}: pos_att_type names {' or '.join(TERMS)} "
            "with relative_attention, and nothing without it"
        )
    norms = {name.strip() for name in str(fields.get("norm_rel_ebd")).lower().split("|")}
    if norms - {"layer_norm", "none"}:
        problems.append(f"norm_rel_ebd is {fields['norm_rel_ebd']!r}; only 'layer_norm' and 'none' are supported")
    width, pooled = fields.get("hidden_size"), fields.get("pooler_hidden_size")
    if pooled is not None and width is not None and pooled != width:
        problems.append(f"pooler_hidden_size is {pooled!r}; only hidden_size, {width!r}, is supported")
    first = fields.get("model_type") == "deberta"
    if first and fields.get("talking_head"):  # version 2 has no such layers
        problems.append(f"talking_head is {fields['talking_head']!r}; only False is supported")
    values: dict[str, Any] = {"relative_terms": "|".join(term for term in TERMS if term in names) or "none"}
    values["norm_relative"] = "layer_norm" in norms and bool(relative) and not first
    if first:
        values |= {"position_buckets": 0, "share_att_key": False, "conv_kernel_size": 0}
    sizes = SIZES.get(str(fields.get("model_type")), {}).items()
    return values | {name: size for name, size in sizes if fields.get(NAMES[name]) is None}, problems


def write_relative(config: Any) -> dict[str, Any]:
    """Return the fields about relative positions for a `config.json`."""
    fields = {
        "relative_attention": bool(config.terms),
        "pos_att_type": list(config.terms),
        "pooler_hidden_size": config.hidden_size,
        "pooler_dropout": 0.0,
    }
    if config.model_type == "deberta":
        return fields
    return fields | {"norm_rel_ebd": "layer_norm" if config.norm_relative else "none"}


def _to_ours(values: dict[str, Any]) -> dict[str, Any]:
    """Write 0 for numbers that are switched off by -1."""
    off = [name for name in ("position_buckets", "max_relative_positions") if values.get(name) == -1]
    return values | dict.fromkeys(off, 0)


def _to_theirs(fields: dict[str, Any]) -> dict[str, Any]:
    fields = fields | {name: -1 for name in ("position_buckets", "max_relative_positions") if fields[name] == 0}
    gone = {"embedding_size"} if fields["embedding_size"] == 0 else set()
    gone |= {"conv_groups", "conv_act"} if not fields["conv_kernel_size"] else set()
    gone |= {"cls_dropout"} if fields["cls_dropout"] is None else set()
    gone |= set(SECOND) if fields["model_type"] == "deberta" else set()
    return {name: value for name, value in fields.items() if name not in gone}


FILE = ConfigFile(
    called="a DeBERTa",
    model_type="deberta-v2",
    variants={"deberta": "Deberta"},
    names=NAMES,
    architectures=class_names("DebertaV2"),
    harmless=frozenset({"pooler_dropout"}),  # our task heads have one rate of dropout
    # Of fields that a file lacks, as transformers assumes them.
    defaults={
        "relative_attention": False, "position_biased_input": True, "position_buckets": -1, "share_att_key": False,
        "norm_rel_ebd": "none", "legacy": True,
    },
    more=MoreFields(
        ("relative_attention", "pos_att_type", "norm_rel_ebd", "pooler_hidden_size", "talking_head"),
        read_relative, write_relative,
    ),
    to_ours=_to_ours,
    to_theirs=_to_theirs,
)  # fmt: skip
