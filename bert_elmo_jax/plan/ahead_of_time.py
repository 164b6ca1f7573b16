"""Compiling a step for devices that are not there, from shapes alone, and what is then known of it."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from bert_elmo_jax.train.parallel import over_mesh
from bert_elmo_jax.train.sharding import BATCH, RULES, Rules, shardings
from bert_elmo_jax.train.state import State
from bert_elmo_jax.train.step import Step

# How the TPU's compiler says what is needed and what there is: of everything, or of what does not fit by itself.
SIZE = r"([\d.]+)([KMGT]?)"
SHORTAGES = (
    rf"Used {SIZE}\s+of\s+{SIZE}\s+hbm",
    rf"total memory required for\s[^(]*\({SIZE}\)\s+exceeds available HBM\s+\({SIZE}\)",
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class TooLarge(MemoryError):
    """A program that does not fit: it needs `needs` bytes of a device that has `has`, where the compiler says so."""

    def __init__(self, needs: float | None, has: float | None, message: str = ""):
        super().__init__(message or f"needs {needs} bytes of a device's memory, there are {has}")
        self.needs, self.has = needs, has


@dataclass(frozen=True)
class Compiled:
    """A step that was compiled: its text, and what the compiler says of one device's memory and work.

    Memory in bytes: `arguments`, `outputs`, how much of these lies in the arguments' own memory (`aliased`, because
    the state is given away), `temporaries` and the program's own `code`. XLA's count of `flops` and `bytes` takes
    every loop for one turn; see `compiled_cost`.
    """

    text: str | None  # None where this jaxlib cannot read the compiler's program
    arguments: int
    outputs: int
    aliased: int
    temporaries: int
    code: int
    flops: float
    bytes: float
    seconds: float  # that compiling took

    @property
    def total(self) -> float:
        """All that must be in a device's memory at once."""
        return float(self.arguments + self.outputs - self.aliased + self.temporaries + self.code)


def lower_step(
    step: Step, state: State, batch: Mapping[str, jax.ShapeDtypeStruct], mesh: Mesh, rules: Rules = RULES
) -> Any:
    """The step as `over_mesh` runs it, traced for the mesh's devices; `state` and `batch` are shapes."""
    shards = mesh.shape["data"] * mesh.shape["fsdp"]
    for name, values in batch.items():
        if values.shape[0] % shards:
            raise ValueError(
                f"a batch's {name} has {values.shape[0]} rows, which {shards} devices cannot share equally: choose a "
                f"multiple of {shards}"
            )
    rows = NamedSharding(mesh, BATCH)
    placed = jax.tree.map(_place, state, shardings(state, mesh, rules))
    run: Any = over_mesh(step, state, mesh, rules).step
    return run.lower(placed, {name: _place(values, rows) for name, values in batch.items()})


def compile_step(
    step: Step, state: State, batch: Mapping[str, jax.ShapeDtypeStruct], mesh: Mesh, rules: Rules = RULES
) -> Compiled:
    """The same, compiled. Raises `TooLarge` where the compiler finds that it does not fit.

    >>> import jax.numpy as jnp, optax
    >>> from bert_elmo_jax.train import make_mesh, make_step, new_state
    >>> def loss(params, batch, key, carry):
    ...     return {"square": (((batch["x"] @ params["w"]) ** 2).sum(), 1.0)}, {}, carry
    >>> state = jax.eval_shape(lambda key: new_state({"w": jnp.zeros((4, 2))}, optax.sgd(0.1), key), jax.random.key(0))
    >>> step = make_step(loss, optax.sgd(0.1), {"square": 1.0})
    >>> compiled = compile_step(step, state, {"x": jax.ShapeDtypeStruct((16, 4), jnp.float32)}, make_mesh())
    >>> compiled.arguments >= 4 * 2 * 4, compiled.aliased >= 4 * 2 * 4
    (True, True)
    """
    lowered = lower_step(step, state, batch, mesh, rules)
    start = time.perf_counter()
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        raise explained(error) from None
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    try:
        text = compiled.as_text()
    except jax.errors.JaxRuntimeError:  # a libtpu much newer than jaxlib says things that it does not know
        text = None
    return Compiled(
        text, memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes,
        memory.temp_size_in_bytes, memory.generated_code_size_in_bytes, cost.get("flops", 0.0),
        cost.get("bytes accessed", 0.0), time.perf_counter() - start,
    )  # fmt: skip


def _place(leaf: jax.ShapeDtypeStruct, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    # All of its type: a weak one, such as jnp.full gives, is compiled into another program.
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.weak_type)


def explained(error: Exception) -> Exception:
    """`TooLarge`, with the numbers of the compiler's message, where that says so; any other error as it is.

    >>> error = explained(RuntimeError("RESOURCE_EXHAUSTED: Ran out of memory. Used 20.50G of 15.75G hbm."))
    >>> error.needs / 2**30, error.has / 2**30
    (20.5, 15.75)
    """
    message = str(error)
    if "RESOURCE_EXHAUSTED" not in message and "out of memory" not in message.lower():
        return error
    found = next(filter(None, (re.search(pattern, message) for pattern in SHORTAGES)), None)
    if not found:
        return TooLarge(None, None, message)
    needs, has = (float(found.group(n)) * UNITS[found.group(n + 1)] for n in (1, 3))
    return TooLarge(needs, has, message)


def largest(fits: Callable[[int], bool], first: int, most: int = 2**20, tries: int = 8) -> tuple[int, int | None]:
    """The largest number found that fits, and the smallest found that does not (None: none was met).

    From `first` on it doubles or halves until the answer changes, then halves the gap, `tries` questions in all; so
    the two are next to each other, or as near as the tries allow. 0 fits unasked.

    >>> largest(lambda n: n <= 37, first=8, tries=9)
    (37, 38)
    >>> largest(lambda n: n <= 37, first=8, tries=4)
    (32, 64)
    """
    good, bad, n = 0, None, min(first, most)
    for _ in range(tries):
        if fits(n):
            good = n
        else:
            bad = n
        if bad is None:
            n = min(2 * good, most)
        else:
            n = max(bad // 2, 1) if good == 0 else (good + bad) // 2
        if n in (good, bad):
            break
    return good, bad
