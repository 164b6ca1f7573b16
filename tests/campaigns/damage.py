"""Broken files: strategies of hypothesis that damage a valid file as its format allows."""

import json
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from([-1, 0, 1, 2**31, 2**63, 10**12, -(10**30)]),
    st.floats(), st.text(max_size=8), st.just("가" * 300),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
LINES = st.sampled_from(
    ["", "\t", "\t\t\t\t", ",", '"', "\0", "-DOCSTART-", "1 2 3", "O", "\ufeff", "#", " x", "가" * 200]
)


def damaged(valid: bytes, name: str) -> st.SearchStrategy[bytes]:
    """Return a strategy for broken versions of a file, by its name: of JSON, of lines, or of bytes."""
    ways = [damaged_bytes(valid)]
    if name.endswith(".json"):
        ways += [damaged_json(valid)] * 3
    elif name.endswith((".txt", ".tsv", ".csv", ".conll", ".conllu", ".jsonl")):
        ways += [damaged_lines(valid)] * 2
    return st.one_of(ways)


@st.composite
def damaged_json(draw: Callable[..., Any], valid: bytes) -> bytes:
    """Replace, remove, rename or add a value somewhere in a JSON text."""
    tree = json.loads(valid)
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        way = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "add", "number"]))
        if way == "replace":
            holder[key] = draw(VALUES)
        elif way == "number" and isinstance(holder[key], int | float):
            holder[key] = draw(st.sampled_from([-holder[key], 0, holder[key] + 1, holder[key] * 1000, float("nan")]))
        elif way == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = holder.pop(key) if way == "rename" else draw(VALUES)
    return json.dumps(tree, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


def _places(tree: Any) -> Any:
    """Yield (holder, key) of every value; few of a long list."""
    if isinstance(tree, dict):
        items: Any = list(tree.items())[:200]
    elif isinstance(tree, list):
        items = list(enumerate(tree))[:20]
    else:
        return
    for key, value in items:
        yield tree, key
        yield from _places(value)


@st.composite
def damaged_lines(draw: Callable[..., Any], valid: bytes) -> bytes:
    """Remove, repeat, cut, join or replace lines and cells of a text."""
    lines = valid.decode("utf-8", "replace").split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, min(len(lines), 40) - 1)))
        way = draw(st.sampled_from(["remove", "repeat", "cut", "replace", "cell", "join"]))
        line = lines[at]
        if way == "remove":
            del lines[at]
        elif way == "repeat":
            lines.insert(at, line)
        elif way == "cut":
            lines[at] = line[: draw(st.integers(0, len(line)))]
        elif way == "replace":
            lines[at] = draw(LINES | st.text(max_size=20))
        elif way == "cell":
            cells = line.split("\t" if "\t" in line else "," if "," in line else " ")
            cells[draw(st.integers(0, len(cells) - 1))] = draw(LINES | st.text(max_size=5))
            lines[at] = ("\t" if "\t" in line else "," if "," in line else " ").join(cells)
        elif at + 1 < len(lines):
            lines[at : at + 2] = [line + lines[at + 1]]
        if not lines:
            break
    ends = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return ends.join(lines).encode("utf-8", "surrogatepass")


@st.composite
def damaged_bytes(draw: Callable[..., Any], valid: bytes) -> bytes:
    """Flip, set, cut, remove, repeat or insert bytes."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        # Headers are where a format is decided: half of the damage is in the first bytes or the last.
        size = len(data)
        if not size:
            break
        ends = st.integers(0, min(size, 128) - 1) | st.integers(max(0, size - 64), size - 1)
        at = draw(ends | st.integers(0, size - 1))
        way = draw(st.sampled_from(["flip", "set", "cut", "remove", "repeat", "insert", "number", "zeros"]))
        if way == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif way == "set":
            data[at] = draw(st.integers(0, 255))
        elif way == "cut":
            del data[at:]
        elif way == "remove":
            del data[at : at + draw(st.integers(1, 64))]
        elif way == "repeat":
            data[at:at] = data[at : at + draw(st.integers(1, 64))]
        elif way == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=16))
        elif way == "number":
            data[at : at + 8] = draw(st.sampled_from([0, 2**63, 2**64 - 1, 2**31, 2**32 + 1])).to_bytes(8, "little")
        else:
            data[at : at + 32] = bytes(min(32, size - at))
    return bytes(data)


def draw_file(valid: bytes, name: str, number: int) -> bytes:
    """Return the broken file of this number: always the same for the same valid file."""
    examples: list[bytes] = []

    # The first examples of a strategy are its simplest ones, so the last of several is taken.
    @seed(number)
    @settings(max_examples=6, phases=[Phase.generate], database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(damaged(valid, name))
    def collect(data: bytes) -> None:
        examples.append(data)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    changed = [data for data in examples if data != valid]
    return changed[-1] if changed else valid[: len(valid) // 2]
