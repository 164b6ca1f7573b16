"""The fields of the `config.json` of GPT-2 (`gpt2`) and GPT-1 (`openai-gpt`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.huggingface_config import FINITE, SIZE, ConfigFile, MoreFields
from bert_elmo_jax.files import read_json
from bert_elmo_jax.json_values import TEXT

Fields = Mapping[str, Any]

# Our name -> theirs, in both files.
NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "max_positions": "n_positions",
    "norm_eps": "layer_norm_epsilon",
    "dropout": "resid_pdrop",
    "embedding_dropout": "embd_pdrop",
    "attention_dropout": "attn_pdrop",
    "classifier_dropout": "summary_first_dropout",
    "initializer_range": "initializer_range",
    "pad_id": "pad_token_id",
}
# The head of several choices is only read as transformers builds it by default.
SUMMARY = {
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "summary_activation": None,
    "summary_proj_to_labels": True,
}
GPT1_ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}  # its gelu is the tanh form


KINDS = {"n_ctx": SIZE, "classifier_dropout": FINITE, "hidden_dropout": FINITE}


def _read_common(fields: Fields, num_layers: int) -> tuple[dict[str, Any], list[str]]:
    """Return our fields that both files have under other rules, and a list of problems."""
    problems = []
    positions = fields.get("n_positions", fields.get("n_ctx"))
    if fields.get("n_ctx") not in (None, positions):
        problems.append(f"n_ctx is {fields['n_ctx']!r} but n_positions is {positions!r}; they are the same number")
    if any("DoubleHeads" in name for name in fields.get("architectures") or ()):
        problems += [
            f"{name} is {fields[name]!r}; only {supported!r} is supported"
            for name, supported in SUMMARY.items()
            if name in fields and fields[name] != supported
        ]
    values: dict[str, Any] = {}
    if "n_positions" not in fields and positions is not None:
        values["max_positions"] = positions
    if (rate := fields.get("classifier_dropout", fields.get("hidden_dropout"))) is not None:
        values["classifier_dropout"] = rate
    end = fields.get("eos_token_id")
    if isinstance(end, list) and len(end) == 1:
        [end] = end
    if end is not None and (not isinstance(end, int) or isinstance(end, bool)):
        problems.append(f"eos_token_id is {end!r}; only one piece, by its id, can end a text")
    elif end is not None:
        values["end_id"] = end
        if fields.get("pad_token_id") is None:
            values["pad_id"] = end
    return values, problems


def _read_gpt2(fields: Fields, num_layers: int) -> tuple[dict[str, Any], list[str]]:
    values, problems = _read_common(fields, num_layers)
    return {"norm_first": True} | values, problems


def _read_gpt1(fields: Fields, num_layers: int) -> tuple[dict[str, Any], list[str]]:
    values, problems = _read_common(fields, num_layers)
    name = fields.get("afn", "gelu")
    if name not in GPT1_ACTIVATIONS:
        problems.append(f"afn is {name!r}; a GPT-1 has one of {', '.join(GPT1_ACTIVATIONS)}")
    width = fields.get("n_embd", 768)
    if fields.get("n_inner") not in (None, 4 * width):
        problems.append(f"n_inner is {fields['n_inner']!r}; the feed-forward layers of a GPT-1 have 4 · n_embd")
    return {"norm_first": False, "activation": GPT1_ACTIVATIONS.get(name, "")} | values, problems


def _to_ours(values: dict[str, Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {"feed_forward_size": 4 * values.get("hidden_size", 768)}
    if not values["norm_first"]:
        usual |= {"vocab_size": 40478, "max_positions": 512}
    return usual | values


def _write_gpt2(config: Any) -> dict[str, Any]:
    return {"bos_token_id": config.end_id, "eos_token_id": config.end_id}


def _write_gpt1(config: Any) -> dict[str, Any]:
    names = {ours: theirs for theirs, ours in reversed(GPT1_ACTIVATIONS.items())}
    name = {"gelu_pytorch_tanh": "gelu", "swish": "swish"}.get(config.activation) or names.get(config.activation)
    unknown = {
        "activation": name is None and config.activation,
        "feed_forward_size": config.feed_forward_size != 4 * config.hidden_size and config.feed_forward_size,
        "scale_attention": not config.scale_attention and "False",
        "scale_by_layer": config.scale_by_layer,
    }
    wrong = [f"{field} {value}" for field, value in unknown.items() if value]
    if wrong:
        raise ValueError(f"transformers has no GPT-1 with {', '.join(wrong)}: only a GPT-2 (norm_first) can have it")
    return {"afn": name, "eos_token_id": config.end_id}


def _classes(title: str, *more: tuple[str, str]) -> dict[tuple[str, ...], str]:
    tasks = {"classify": "ForSequenceClassification", "choice": "DoubleHeadsModel", **dict(more)}
    # Without a task it is the language model, whose head has no weights of its own.
    return {(): f"{title}LMHeadModel"} | {(head,): title + end for head, end in tasks.items()}


GPT2 = ConfigFile(
    called="a GPT-2",
    model_type="gpt2",
    names=NAMES
    | {
        "feed_forward_size": "n_inner",
        "activation": "activation_function",
        "scale_attention": "scale_attn_weights",
        "scale_by_layer": "scale_attn_by_inverse_layer_idx",
    },
    architectures=_classes("GPT2", ("tag", "ForTokenClassification"), ("span", "ForQuestionAnswering")),
    # Scores are always float32 here, which `reorder_and_upcast_attn` asks for.
    harmless=frozenset({"reorder_and_upcast_attn", *SUMMARY}),
    more=MoreFields(("n_ctx", "eos_token_id", "classifier_dropout", "hidden_dropout"), _read_gpt2, _write_gpt2, KINDS),
    to_ours=_to_ours,
)
GPT1 = ConfigFile(
    called="a GPT-1",
    model_type="openai-gpt",
    names=NAMES,
    architectures=_classes("OpenAIGPT"),
    only={"n_special": 0},
    harmless=frozenset({"predict_special_tokens", *SUMMARY}),
    more=MoreFields(
        ("n_ctx", "eos_token_id", "afn", "n_inner", "classifier_dropout", "hidden_dropout"),
        _read_gpt1,
        _write_gpt1,
        KINDS | {"afn": TEXT},
    ),
    to_ours=_to_ours,
)


def choose_file(source: Fields | str | Path) -> ConfigFile:
    """Return the kind of a `config.json`, by path or content; without a `model_type` it is a GPT-2's."""
    fields = source if isinstance(source, Mapping) else read_json(source)
    return GPT1 if fields.get("model_type") == GPT1.model_type else GPT2
