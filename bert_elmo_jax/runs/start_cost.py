"""The cost of each start of a run, which the run itself records in its directory."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COSTS = "costs.jsonl"  # in a run directory, one line per start


@contextlib.contextmanager
def cost_kept(run: Path, first: bool = True) -> Iterator[None]:
    """Record the cost of the block as one start of a run. Of several processes of one run only the `first` does.

    The time before, for imports, does not count. A process that is killed records nothing.
    """
    began, before = time.monotonic(), _processor_seconds()
    try:
        yield
    finally:
        if first:
            add_cost(run, time.monotonic() - began, _processor_seconds() - before, _find_device())


def add_cost(run: Path, seconds: float, processor: float = 0.0, device: str = "") -> None:
    """Add the cost of one start; a run directory that cannot be written, or is gone, is left alone."""
    cost = {"seconds": round(seconds, 3), "processor": round(processor, 3), "device": device}
    with contextlib.suppress(OSError), (run / COSTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(cost, ensure_ascii=False) + "\n")


def read_costs(run: Path) -> list[dict[str, Any]]:
    """Return the costs of all starts of a run, oldest first; a line that is damaged is skipped."""
    costs = []
    with contextlib.suppress(OSError):
        for line in (run / COSTS).read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                cost = json.loads(line)
                costs.append({**cost, "seconds": float(cost["seconds"]), "processor": float(cost["processor"])})
    return costs


def sum_costs(run: Path, what: str = "seconds") -> float:
    """Return what all starts of a run cost together, in seconds or in `processor` seconds."""
    return sum((cost[what] for cost in read_costs(run)), 0.0)


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended; Windows knows its own only."""
    return sum(os.times()[:4])


def _find_device() -> str:
    """Return what this process has computed on, or "" if it has not computed: asking JAX would start a device."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not bridge._backends:
        return ""
    import jax

    return f"{jax.device_count()} × {jax.devices()[0].device_kind}"
