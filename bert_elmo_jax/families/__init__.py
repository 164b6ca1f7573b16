"""Model families, one folder each; each is imported when it is first asked for. `REGISTRY` is the only list of them."""

import copyreg
import functools
import importlib
import itertools
from collections.abc import Iterator
from typing import Any

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.family import Family, WeightFormat
from bert_elmo_jax.generation.decoder import Decoder

__all__ = ["Family", "all_families", "all_formats", "find_decoder", "find_family", "get_family", "register"]

REGISTRY: dict[str, str | Family] = {
    "bert": "bert_elmo_jax.families.bert",
    "elmo": "bert_elmo_jax.families.elmo",
    "distilbert": "bert_elmo_jax.families.distilbert",
    "modernbert": "bert_elmo_jax.families.modernbert",
    "roberta": "bert_elmo_jax.families.roberta",
    "electra": "bert_elmo_jax.families.electra",
    "deberta": "bert_elmo_jax.families.deberta",
    "gpt": "bert_elmo_jax.families.gpt",
    "transformer": "bert_elmo_jax.families.transformer",
    "bart": "bert_elmo_jax.families.bart",
    "cove": "bert_elmo_jax.families.cove",
    "awd_lstm": "bert_elmo_jax.families.awd_lstm",
    "mpnet": "bert_elmo_jax.families.mpnet",
    "albert": "bert_elmo_jax.families.albert",
    "eurobert": "bert_elmo_jax.families.eurobert",
    "static": "bert_elmo_jax.families.static",
}


def register(family: Family) -> Family:
    """Add a family, so that runs, `load` and sweeps of this process know it."""
    REGISTRY[family.name] = family
    return family


def get_family(name: str) -> Family:
    """Return a family by name.

    >>> get_family("bert").inputs.name
    'pieces'
    >>> get_family("brt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: there is no family 'brt'; there are bert, ...; did you mean bert?
    """
    if name not in REGISTRY:
        names = ", ".join(REGISTRY)
        raise ValueError(f"there is no family {name!r}; there are {names}{did_you_mean(name, REGISTRY)}")
    entry = REGISTRY[name]
    if isinstance(entry, str):
        entry = REGISTRY[name] = importlib.import_module(f"{entry}.family").FAMILY
    return entry


copyreg.pickle(Family, lambda family: (get_family, (family.name,)))


def all_families() -> Iterator[Family]:
    """Yield every family; this imports them all."""
    return (get_family(name) for name in list(REGISTRY))


def all_formats() -> Iterator[tuple[str, str, WeightFormat]]:
    """Yield every weight format with the names of its family and its own; this imports no model."""
    for family, entry in list(REGISTRY.items()):
        registered = entry.formats if isinstance(entry, Family) else importlib.import_module(f"{entry}.formats").FORMATS
        for name, format in registered.items():
            yield family, name, format


def find_family(config: Any) -> Family:
    """Return the family of a model's configuration.

    >>> from bert_elmo_jax.families.bert.config import BertConfig
    >>> find_family(BertConfig()).name
    'bert'
    """
    loaded = [family for family in REGISTRY.values() if isinstance(family, Family)]
    for kind in type(config).__mro__:  # a family's configuration may be a subclass of another one's
        for family in itertools.chain(loaded, all_families()):
            if family.config is kind:
                return family
    raise TypeError(f"{type(config).__name__} is not the configuration of a family; there are {', '.join(REGISTRY)}")


def find_decoder(encoder: Any) -> Decoder:
    """Return what writes with an encoder's weights; raise for a family that does not write."""
    family = find_family(encoder.config)
    if family.decoder is None:
        writers = [other.called for other in all_families() if other.decoder is not None]
        who = f"; {' and '.join(writers)} can" if writers else ""
        raise ValueError(f"{encoder.source}: {family.called} does not write{who}")
    return _make_decoder(family, encoder.config)


@functools.lru_cache(maxsize=16)
def _make_decoder(family: Family, config: Any) -> Decoder:
    """Return the same functions for all models of a configuration, which then share compiled programs."""
    assert family.decoder is not None
    decoder: Decoder = family.decoder(config)
    return decoder
