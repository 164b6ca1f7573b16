"""What `model.json` says of a model, every field checked before it is used."""

import dataclasses
import difflib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.models.bert_config import BertConfig

FAMILIES = ("bert",)
FIELDS = {
    "family": "a string",
    "config": "an object",
    "pooler": "true or false",
    "heads": "a list of strings",
    "classes": "an object of whole numbers",  # how many classes a head has, where that depends on the task
    "labels": "a list of strings or null",
    "problem_type": "a string or null",
    "tokenizer": "an object or null",
}
KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "an object": lambda value: isinstance(value, dict),
    "true or false": lambda value: isinstance(value, bool),
    "a whole number": lambda value: type(value) is int,
    "a number": lambda value: type(value) in (int, float),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "an object of whole numbers": lambda value: (
        isinstance(value, dict) and all(type(item) is int for item in value.values())
    ),
}


def read_facts(file: Path) -> dict[str, Any]:
    """The fields of a `model.json`, each of its type."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not JSON ({error}); copy it again from the run") from error
    check_kind(str(file), "the whole", facts, "an object")
    for name, kind in FIELDS.items():
        if name not in facts:
            raise ValueError(f"{file} has no field {name!r}; copy it again from the run")
        check_kind(str(file), name, facts[name], kind)
        if name == "family" and facts[name] not in FAMILIES:
            raise ValueError(
                f"{file}: family {facts[name]!r} is not known to this version; it knows {', '.join(FAMILIES)}"
            )
    return facts


def read_config(fields: Mapping[str, Any], file: str) -> BertConfig:
    """The configuration, of which every field is written out.

    >>> read_config({"num_layer": 2}, "model.json")
    Traceback (most recent call last):
    ValueError: model.json: no field 'num_layer' in a BERT's config; did you mean num_layers
    """
    kinds = {int: "a whole number", float: "a number", float | None: "a number or null", bool: "true or false"}
    known: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(BertConfig)}
    for name, value in fields.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ValueError(
                f"{file}: no field {name!r} in a BERT's config{f'; did you mean {near[0]}' if near else ''}"
            )
        check_kind(file, name, value, kinds.get(known[name], "a string"))
    missing = [name for name in known if name not in fields]
    if missing:  # a default would be another model, and nobody would notice
        raise ValueError(f"{file}: the config lacks {', '.join(missing)}; copy it again from the run")
    try:
        return BertConfig(**fields)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def check_kind(file: str, name: str, value: Any, kind: str) -> None:
    """Refuse a value of another type.

    >>> check_kind("model.json", "hidden_size", "64", "a whole number")
    Traceback (most recent call last):
    ValueError: model.json: hidden_size is '64'; expected a whole number
    """
    if value is None and kind.endswith(" or null"):
        return
    if not KINDS[kind.removesuffix(" or null")](value):
        raise ValueError(f"{file}: {name} is {value!r:.60}; expected {kind}")
