"""Read `model.json` and check its fields."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.inference.model_kinds import get_kind, list_kinds

FIELDS = {  # of all kinds of models; each kind has more
    "family": "a string",
    "config": "an object",
    "heads": "a list of strings",
    "tokenizer": "an object or null",
}
KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "an object": lambda value: isinstance(value, dict),
    "true or false": lambda value: isinstance(value, bool),
    "a whole number": lambda value: type(value) is int,
    "a number": lambda value: type(value) in (int, float),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "a list of pairs of whole numbers": lambda value: (
        isinstance(value, list | tuple)
        and all(isinstance(pair, list | tuple) and [type(item) for item in pair] == [int, int] for pair in value)
    ),
    "an object of whole numbers": lambda value: (
        isinstance(value, dict) and all(type(item) is int for item in value.values())
    ),
}


def read_facts(file: Path) -> dict[str, Any]:
    """Return the fields of a `model.json`; raise on a missing field or a wrong type."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not JSON ({error}); copy it again from the run") from error
    check_kind(str(file), "the whole", facts, "an object")
    _check_fields(facts, FIELDS, str(file))
    family = get_kind(facts["family"])
    if family is None:
        raise ValueError(
            f"{file}: family {facts['family']!r} is not known to this version; it knows {', '.join(list_kinds())} "
            "(a family of your own: import the module that registers it before loading)"
        )
    _check_fields(facts, family.fields, str(file))
    _check_fields(facts, {name: kind for name, kind in family.optional.items() if name in facts}, str(file))
    return facts


def _check_fields(facts: Mapping[str, Any], kinds: Mapping[str, str], file: str) -> None:
    for name, kind in kinds.items():
        if name not in facts:
            raise ValueError(f"{file} has no field {name!r}; copy it again from the run")
        check_kind(file, name, facts[name], kind)


# The JSON type for each type of field; `Literal`s are strings.
TYPES: dict[Any, str] = {
    int: "a whole number",
    int | None: "a whole number or null",
    float: "a number",
    float | None: "a number or null",
    bool: "true or false",
    str: "a string",
    Sequence[Sequence[int]]: "a list of pairs of whole numbers",
}


def read_config(fields: Mapping[str, Any], family: str, file: str) -> Any:
    """Return the configuration; raise unless every field is given."""
    found = get_kind(family)
    assert found is not None  # read_facts has checked it
    kind, called = found.config, found.called
    known: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(kind)}
    for name, value in fields.items():
        if name not in known:
            raise ValueError(f"{file}: no field {name!r} in {called}'s config{did_you_mean(name, known)}")
        check_kind(file, name, value, "a string" if get_origin(known[name]) is Literal else TYPES[known[name]])
    missing = [name for name in known if name not in fields]
    if missing:  # a default could silently give another model
        raise ValueError(f"{file}: the config lacks {', '.join(missing)}; copy it again from the run")
    try:
        return kind(**{name: _hashable(value) for name, value in fields.items()})
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _hashable(value: Any) -> Any:
    """Return lists as tuples, because compiled functions are cached by configuration."""
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value


def check_kind(file: str, name: str, value: Any, kind: str) -> None:
    """Raise on a value of another type."""
    if value is None and kind.endswith(" or null"):
        return
    if not KINDS[kind.removesuffix(" or null")](value):
        raise ValueError(f"{file}: {name} is {value!r:.60}; expected {kind}")
