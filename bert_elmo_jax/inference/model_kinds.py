"""The kinds of models that a run directory can hold, families and task networks, and the checks of `model.json`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_origin

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.earlier_names import rename_fields
from bert_elmo_jax.families import REGISTRY, Family, find_family, get_family
from bert_elmo_jax.families.family import Shapes
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.files import read_json
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.text import FastaiVocabulary, Lexicon, Tokenizer, WordTable, WordVocabulary
from bert_elmo_jax.weights.parameter_tree import flatten

network_shapes = lazy_function("bert_elmo_jax.networks.word_network", "network_shapes")
Reads = Tokenizer | WordVocabulary | FastaiVocabulary | Lexicon | WordTable  # converts text to ids, or to vectors
FIELDS = {  # of all kinds of models; each kind has more
    "family": "a string",
    "config": "an object",
    "heads": "a list of strings",
    "tokenizer": "an object or null",
}
# Of a classifier of documents: the folders of models whose probabilities are averaged with this one's.
DOCUMENT_FIELDS = {"task": "an object", "average_with": "a list of strings"}
KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "an object": lambda value: isinstance(value, dict),
    "true or false": lambda value: isinstance(value, bool),
    "a whole number": lambda value: type(value) is int,
    "a number": lambda value: type(value) in (int, float),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "a list of whole numbers": lambda value: (
        isinstance(value, list | tuple) and all(type(item) is int for item in value)
    ),
    "a list of pairs of whole numbers": lambda value: (
        isinstance(value, list | tuple)
        and all(isinstance(pair, list | tuple) and [type(item) for item in pair] == [int, int] for pair in value)
    ),
    "an object of whole numbers": lambda value: (
        isinstance(value, dict) and all(type(item) is int for item in value.values())
    ),
}
# The JSON type for each type of field; `Literal`s are strings.
TYPES: dict[Any, str] = {
    int: "a whole number",
    int | None: "a whole number or null",
    float: "a number",
    float | None: "a number or null",
    bool: "true or false",
    str: "a string",
    str | None: "a string or null",
    Sequence[Sequence[int]]: "a list of pairs of whole numbers",
    tuple[int, ...]: "a list of whole numbers",
}


@dataclass(frozen=True)
class ModelKind:
    """The description of one kind of model in `model.json`."""

    name: str
    called: str  # for messages: "a BERT"
    config: type[Any]
    fields: Mapping[str, str]  # fields of `model.json` that only this kind has, and their types
    optional: Mapping[str, str]  # fields of a model that was fine-tuned
    shapes: Callable[[Any, Mapping[str, Any], str], Shapes]  # of all parameters, from configuration, facts and source
    find_tokenizer: Callable[[Path, Any, bool | None], Reads | None]  # lowercase comes last
    describe: Callable[[Shapes], dict[str, Any]] = field(default=lambda shapes: {})  # fields that parameters show
    folds_case: bool = False  # some of its tokenizers fold case and others do not


def get_kind(name: str, where: str = "") -> ModelKind:
    """Return a kind by its name in `model.json`."""
    if name in REGISTRY:
        return _family_kind(get_family(name))
    # Loading an encoder does not import the networks.
    from bert_elmo_jax.inference.task_networks import NETWORKS

    if name in NETWORKS:
        return _network_kind(name, NETWORKS[name])
    raise ValueError(
        f"{where}family {name!r} is not known to this version; it knows {', '.join([*REGISTRY, *NETWORKS])} "
        "(a family of your own: import the module that registers it before loading)"
    )


def find_kind(config: Any) -> ModelKind:
    """Return the kind of a configuration."""
    if hasattr(config, "CALLED"):  # a task network
        from bert_elmo_jax.inference.task_networks import network_name

        return get_kind(network_name(config))
    return _family_kind(find_family(config))


def _family_kind(family: Family) -> ModelKind:
    inputs = family.inputs
    fields = inputs.model_fields()
    return ModelKind(
        name=family.name,
        called=family.called,
        config=family.config,
        fields=fields.needed,
        optional={**fields.optional, **(DOCUMENT_FIELDS if inputs.documents else {})},
        shapes=partial(inputs.shapes, family),
        find_tokenizer=partial(inputs.find_tokenizer, family),
        describe=inputs.describe,
        folds_case=inputs.folds_case,
    )


def _network_kind(name: str, network: Any) -> ModelKind:
    return ModelKind(
        name=name,
        called=network.config.CALLED,
        config=network.config,
        fields={"labels": "a list of strings or null", "encoder": "an object or null", "task": "an object"},
        optional={},
        shapes=_network_shapes,
        find_tokenizer=lambda folder, config, lowercase: Lexicon.load(folder),
    )


def _network_shapes(config: Any, fields: Mapping[str, Any], source: str) -> Shapes:
    from bert_elmo_jax.networks import network_shapes

    shapes = {name: tuple(shape.shape) for name, shape in flatten(network_shapes(config)).items()}
    if not config.tuned:
        return shapes
    # The parameters include a fine-tuned encoder, whose configuration is a field of its own.
    described = fields.get("encoder")
    if described is None or described.get("family") not in REGISTRY:
        raise ValueError(f"{source}: the encoder that was fine-tuned is not described; copy it again from the run")
    family = get_family(described["family"])
    try:
        encoder = family.config(**{name: _hashable(value) for name, value in described["config"].items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: encoder: {error}; copy it again from the run") from error
    return shapes | param_shapes(family, encoder, pooler=False)


def read_facts(file: Path) -> dict[str, Any]:
    """Return the fields of a `model.json`; raise on a missing field or a wrong type."""
    try:
        fields = read_json(file)
    except ValueError as error:
        raise ValueError(f"{error}; copy it again from the run") from None
    _check_fields(fields, FIELDS, str(file))
    family = get_kind(fields["family"], f"{file}: ")
    _check_fields(fields, family.fields, str(file))
    _check_fields(fields, {name: kind for name, kind in family.optional.items() if name in fields}, str(file))
    return fields


def _check_fields(fields: Mapping[str, Any], kinds: Mapping[str, str], file: str) -> None:
    for name, kind in kinds.items():
        if name not in fields:
            raise ValueError(f"{file} has no field {name!r}; copy it again from the run")
        check_kind(file, name, fields[name], kind)


def read_config(fields: Mapping[str, Any], family: str, file: str) -> Any:
    """Return the configuration; raise unless every field is given, except for those added after the first runs."""
    kind, fields = get_kind(family), rename_fields(fields)
    types: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(kind.config)}
    for name, value in fields.items():
        if name not in types:
            raise ValueError(f"{file}: no field {name!r} in {kind.called}'s config{did_you_mean(name, types)}")
        check_kind(file, name, value, "a string" if get_origin(types[name]) is Literal else TYPES[types[name]])
    added = getattr(kind.config, "ADDED", ())  # their defaults are what earlier versions computed
    missing = [name for name in types if name not in fields and name not in added]
    if missing:  # a default could silently give another model
        raise ValueError(f"{file}: the config lacks {', '.join(missing)}; copy it again from the run")
    try:
        return kind.config(**{name: _hashable(value) for name, value in fields.items()})
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
