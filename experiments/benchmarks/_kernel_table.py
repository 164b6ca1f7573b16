"""The kernels of a GPU's step, from a trace of JAX's profiler."""

import collections
import gzip
import json
import re
from pathlib import Path
from typing import Any

# The first pattern in a kernel's name, or in its place in the program, decides its kind.
KINDS = (
    ("attention", r"fmha|sdpa|flash|cudnn_generated|dot_product_attention"),
    ("drop_add_norm", r"drop_add_norm"),
    ("bias_gelu", r"bias_gelu"),
    ("products", r"gemm|nvjet|cutlass|xmma|cublas|dot_general|splitK"),
    ("copies", r"[Mm]em[Cc]py|[Mm]emset|copy|transpose|concatenate"),
    ("sums", r"reduce"),
    ("loops", r"loop|fusion|wrapped|input|triton"),
)


def kernel_table(folder: str | Path, steps: int, largest: int = 40) -> dict[str, Any]:
    """Return the milliseconds and kernels per step of each kind, and the largest kernels by name."""
    files = sorted(Path(folder).rglob("*.trace.json.gz"))
    if not files:
        raise ValueError(f"{folder} has no *.trace.json.gz: was the program traced?")
    with gzip.open(files[-1], "rt") as lines:
        events = json.load(lines)["traceEvents"]
    return summarise(events, steps, largest)


def summarise(events: list[dict[str, Any]], steps: int, largest: int = 40) -> dict[str, Any]:
    """Return the table of a trace's events.

    >>> name = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}}
    >>> kernel = {"ph": "X", "pid": 1, "tid": 7, "name": "nvjet", "ts": 0.0, "dur": 500.0, "args": {"hlo_op": "dot"}}
    >>> stream = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "Stream #7(Compute)"}}
    >>> summarise([name, stream, kernel], steps=1)["kinds"]
    {'products': {'milliseconds': 0.5, 'kernels': 1.0}}
    """
    devices = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    streams = {
        (e["pid"], e["tid"])
        for e in events
        if e.get("name") == "thread_name" and e["pid"] in devices and "Stream" in e["args"]["name"]
    }
    kernels = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) in streams]
    kinds: dict[str, list[float]] = collections.defaultdict(list)
    names: dict[str, list[float]] = collections.defaultdict(list)
    for event in kernels:
        text = f"{event['name']} {event.get('args', {}).get('hlo_op', '')}"
        kind = next((kind for kind, pattern in KINDS if re.search(pattern, text)), "others")
        kinds[kind].append(event["dur"])
        names[re.sub(r"[_.]?\d+$", "", event["name"])[:80]].append(event["dur"])
    per = 1 / (1000 * steps)
    begin = min((e["ts"] for e in kernels), default=0.0)
    end = max((e["ts"] + e["dur"] for e in kernels), default=0.0)
    busy = sum(e["dur"] for e in kernels)

    def rows(groups: dict[str, list[float]]) -> dict[str, dict[str, float]]:
        ordered = sorted(groups.items(), key=lambda group: -sum(group[1]))
        return {
            name: {"milliseconds": round(sum(times) * per, 3), "kernels": round(len(times) / steps, 1)}
            for name, times in ordered[:largest]
        }

    return {
        "kernels": len(kernels) / steps, "busy": round(busy * per, 3), "span": round((end - begin) * per, 3),
        "kinds": rows(kinds), "names": rows(names),
    }  # fmt: skip
