"""Model families, one folder each; each is imported when it is first asked for. `REGISTRY` is the only list of them."""

import importlib
from collections.abc import Iterator
from typing import Any

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.family import Family

__all__ = ["Family", "all_families", "find_family", "get_family", "register"]

REGISTRY: dict[str, str | Family] = {
    "bert": "bert_elmo_jax.families.bert.family",
    "elmo": "bert_elmo_jax.families.elmo.family",
    "distilbert": "bert_elmo_jax.families.distilbert.family",
    "modernbert": "bert_elmo_jax.families.modernbert.family",
    "roberta": "bert_elmo_jax.families.roberta.family",
    "electra": "bert_elmo_jax.families.electra.family",
    "gpt": "bert_elmo_jax.families.gpt.family",
    "transformer": "bert_elmo_jax.families.transformer.family",
    "cove": "bert_elmo_jax.families.cove.family",
}


def register(family: Family) -> Family:
    """Add a family, so that runs, `load` and sweeps of this process know it."""
    REGISTRY[family.name] = family
    return family


def get_family(name: str) -> Family:
    """Return a family by name.

    >>> get_family("bert").inputs
    'pieces'
    >>> get_family("brt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: there is no family 'brt'; there are bert, ...; did you mean bert?
    """
    if name not in REGISTRY:
        known = ", ".join(REGISTRY)
        raise ValueError(f"there is no family {name!r}; there are {known}{did_you_mean(name, REGISTRY)}")
    found = REGISTRY[name]
    if isinstance(found, str):
        found = REGISTRY[name] = importlib.import_module(found).FAMILY
    return found


def all_families() -> Iterator[Family]:
    """Yield every family; this imports them all."""
    return (get_family(name) for name in list(REGISTRY))


def find_family(config: Any) -> Family:
    """Return the family of a model's configuration.

    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> find_family(BertConfig()).name
    'bert'
    """
    loaded = [family for family in REGISTRY.values() if isinstance(family, Family)]
    for family in [*loaded, *all_families()]:
        if isinstance(config, family.config):
            return family
    raise TypeError(f"{type(config).__name__} is not the configuration of a family; there are {', '.join(REGISTRY)}")
