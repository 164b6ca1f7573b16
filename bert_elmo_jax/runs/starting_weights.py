"""Parameters that a run starts with: given weights, completed by fresh ones."""

import dataclasses
import os
import pkgutil
import sys
from collections.abc import Mapping
from importlib import metadata, util
from typing import Any


def adopt_config(stored: Any, asked: Mapping[str, Any]) -> Any:
    """Return a stored model's configuration with the fields that a run may choose: how it computes, not its sizes."""
    known = {field.name for field in dataclasses.fields(stored)}
    free = {"dropout", "attention_dropout", "dtype", "implementation", "remat", "scan", "vocab_size"} & known
    return dataclasses.replace(stored, **{name: value for name, value in asked.items() if name in free})


def fill_missing(fresh: Mapping[str, Any], stored: Mapping[str, Any], report: bool = True) -> dict[str, Any]:
    """Return the stored parameters, with heads and parts that they lack taken from `fresh`; report those."""
    lacking = [name for name in fresh if name not in stored]
    parts = {name: fresh[name] if name in lacking else stored[name] for name in fresh}
    missing = [name for name in fresh["encoder"] if name not in parts["encoder"]]
    parts["encoder"] = {name: parts["encoder"].get(name, fresh["encoder"][name]) for name in fresh["encoder"]}
    if report and (new := [*lacking, *(f"encoder/{name}" for name in missing)]):
        say(f"new, and untrained at the start, because the weights have none: {', '.join(new)}")
    return parts


def may_have_accelerator() -> bool:
    """Return True if JAX is installed for more than CPUs; does not start JAX, since a process that does holds a TPU."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False
    plugins = util.find_spec("jax_plugins")
    there = [] if plugins is None else [*pkgutil.iter_modules(plugins.submodule_search_locations)]
    return bool(there or metadata.entry_points(group="jax_plugins") or util.find_spec("libtpu"))


def say(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr)
