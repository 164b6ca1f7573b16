"""Compile a training step from shapes, before there are a state and a batch: what it needs, and whether it fits."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from bert_elmo_jax.train.parallel import BATCH, EMPTY, RULES, Rules, check_rows, over_mesh, shardings
from bert_elmo_jax.train.step import State, Step

# The TPU compiler's messages about needed and available memory: in total, or for one part that does not fit.
SIZE = r"([\d.]+)([KMGT]?)"
SHORTAGES = (
    rf"Used {SIZE}\s+of\s+{SIZE}\s+hbm",
    rf"total memory required for\s[^(]*\({SIZE}\)\s+exceeds available HBM\s+\({SIZE}\)",
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class TooLarge(MemoryError):
    """A program that needs `needs` bytes on a device with `has` bytes; None if the compiler does not say."""

    def __init__(self, needs: float | None, has: float | None, message: str = ""):
        super().__init__(message or f"the program needs {needs} bytes of device memory, but only {has} are available")
        self.needs, self.has = needs, has


@dataclass(frozen=True)
class Compiled:
    """A compiled step: its text, and the compiler's figures for the memory, in bytes, and work of one device."""

    text: str | None  # None if this jaxlib cannot read the program
    arguments: int
    outputs: int
    aliased: int  # part of the outputs, in the memory of donated arguments
    temporaries: int
    code: int
    flops: float  # XLA counts a loop body once; see `compiled_cost`
    bytes: float
    seconds: float  # compilation time

    @property
    def total(self) -> float:
        """Peak memory of a device in bytes."""
        return float(self.arguments + self.outputs - self.aliased + self.temporaries + self.code)


def lower_step(
    step: Step,
    state: State,
    batch: Mapping[str, jax.ShapeDtypeStruct],
    mesh: Mesh,
    rules: Rules = RULES,
    constants: Mapping[str, Any] = EMPTY,
) -> Any:
    """Trace the step as `over_mesh` runs it on a mesh; `state`, `batch` and `constants` are shapes."""
    check_rows(batch, mesh.shape["data"] * mesh.shape["fsdp"])
    rows = NamedSharding(mesh, BATCH)
    placed = jax.tree.map(_place, state, shardings(state, mesh, rules))
    run: Any = over_mesh(step, state, mesh, rules).step
    placed_constants = jax.tree.map(_place, dict(constants), shardings(dict(constants), mesh, rules))
    return run.lower(placed, {name: _place(values, rows) for name, values in batch.items()} | placed_constants)


def compile_step(
    step: Step,
    state: State,
    batch: Mapping[str, jax.ShapeDtypeStruct],
    mesh: Mesh,
    rules: Rules = RULES,
    constants: Mapping[str, Any] = EMPTY,
) -> Compiled:
    """Compile the step like `lower_step`; raise `TooLarge` if it does not fit into memory."""
    lowered = lower_step(step, state, batch, mesh, rules, constants)
    start = time.perf_counter()
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        raise explain(error) from None
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}  # there is none for GPUs
    try:
        text = compiled.as_text()
    except jax.errors.JaxRuntimeError:  # jaxlib cannot parse the output of a much newer libtpu
        text = None
    return Compiled(
        text, memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes,
        memory.temp_size_in_bytes, memory.generated_code_size_in_bytes, cost.get("flops", 0.0),
        cost.get("bytes accessed", 0.0), time.perf_counter() - start,
    )  # fmt: skip


def _place(leaf: jax.ShapeDtypeStruct, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    # Weak types, as made by jnp.full, compile to a different program, so they are kept.
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.weak_type)


def explain(error: Exception) -> Exception:
    """Convert an out-of-memory error to `TooLarge` with the compiler's figures; return other errors unchanged."""
    message = str(error)
    if "RESOURCE_EXHAUSTED" not in message and "out of memory" not in message.lower():
        return error
    match = next(filter(None, (re.search(pattern, message) for pattern in SHORTAGES)), None)
    if not match:
        return TooLarge(None, None, message)
    needs, has = (float(match.group(n)) * UNITS[match.group(n + 1)] for n in (1, 3))
    return TooLarge(needs, has, message)
