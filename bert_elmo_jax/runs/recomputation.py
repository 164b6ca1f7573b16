"""The choice, by a device's memory, to keep activations for the backward pass or to compute them again (`remat`)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax.runs.initial_state import choose
from bert_elmo_jax.runs.start_run import say

GIB = 2**30
SHARE = 0.9  # of a device's memory that a step may need; evaluations and copies of a state need some, too


def asks_for_remat(config: ConfigDict) -> bool:
    """Return whether a config leaves the choice to the run: `config.remat=auto`.

    >>> asks_for_remat(ConfigDict({"remat": "auto", "model": {"remat": True}}))
    True
    >>> asks_for_remat(ConfigDict({"remat": "on", "model": {"remat": True}}))
    Traceback (most recent call last):
    ...
    ValueError: config.remat='on' is not known; it is one of auto
    """
    if not config.get("remat"):
        return False
    choose("remat", config.remat, {"auto": None})
    if "remat" not in config.get("model", {}):
        raise ValueError("config.remat=auto is for models with the field model.remat: leave it empty")
    return True


def check_remat(config: ConfigDict, parallel: str) -> None:
    """Raise if a run is to choose, but cannot: `pmap` is not compiled ahead, and several processes must agree."""
    if not asks_for_remat(config):
        return
    if parallel != "jit" or jax.process_count() > 1:
        raise ValueError(
            "config.remat=auto is for one process and --parallel=jit: leave it empty, and set model.remat and "
            "model.scan to true or false; `plan` shows what fits"
        )


def device_memory() -> int | None:
    """Return the bytes that JAX may use of the first device, or None where it does not say, as on a CPU."""
    return (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")


def choose_remat(model: Any, count_bytes: Callable[[Any], float]) -> Any:
    """Return a model's configuration that keeps activations if a step then fits, and computes them again if not.

    `count_bytes` returns the memory that the step of a configuration needs.
    """
    memory = device_memory()
    if memory is None:
        say(f"remat=auto: this device does not say how much memory it has, so model.remat={model.remat} stays")
        return model
    say("remat=auto: compiling a step that keeps its activations, to see whether it fits")
    needs, limit = count_bytes(dataclasses.replace(model, remat=False, scan=False)), SHARE * memory
    again = needs > limit
    shown = f"{needs / GIB:.2f} GiB" if needs < float("inf") else "too much"
    say(f"remat=auto: needs {shown}, and {limit / GIB:.2f} GiB may be used: remat={again}, scan={again}")
    return dataclasses.replace(model, remat=again, scan=again)
