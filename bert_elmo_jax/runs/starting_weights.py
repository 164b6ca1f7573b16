"""Parameters to begin a run with: those of given weights, and what they lack."""

import dataclasses
import os
import pkgutil
import sys
from collections.abc import Mapping
from importlib import metadata, util
from typing import Any

import jax


def computed(stored: Any, asked: Mapping[str, Any]) -> Any:
    """A stored model's configuration, with what a config's `model` may still choose of it (not its sizes)."""
    free = {"dropout", "attention_dropout", "dtype", "implementation", "remat", "scan", "vocab_size"}
    return dataclasses.replace(stored, **{name: value for name, value in asked.items() if name in free})


def completed(fresh: Mapping[str, Any], stored: Mapping[str, Any], begins: bool = True) -> dict[str, Any]:
    """The stored parameters; heads (and parts) that they lack are those drawn anew, which is said as a run begins."""
    lacking = [name for name in fresh if name not in stored]
    parts = {name: fresh[name] if name in lacking else stored[name] for name in fresh}
    missing = [name for name in fresh["encoder"] if name not in parts["encoder"]]
    parts["encoder"] = {name: parts["encoder"].get(name, fresh["encoder"][name]) for name in fresh["encoder"]}
    if begins and (new := [*lacking, *(f"encoder/{name}" for name in missing)]):
        say(f"new, and untrained at the start, because the weights have none: {', '.join(new)}")
    return parts


def weights_of(tree: Any) -> int:
    """How many numbers the matrices of a tree have: each takes part in six operations a token, forward and back."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree) if leaf.ndim >= 2)


def devices() -> str:
    """What a run computes on.

    >>> devices()
    '8 × cpu'
    """
    return f"{jax.device_count()} × {jax.devices()[0].device_kind}"


def may_have_accelerator() -> bool:
    """Whether JAX is installed for more than CPUs, told without starting it: a process that starts a TPU holds it."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False
    plugins = util.find_spec("jax_plugins")
    there = [] if plugins is None else [*pkgutil.iter_modules(plugins.submodule_search_locations)]
    return bool(there or metadata.entry_points(group="jax_plugins") or util.find_spec("libtpu"))


def say(line: str) -> None:
    """A line for whoever started the run."""
    print(line, file=sys.stderr)
