"""The launch of kernels: Pallas through Triton, on blocks of rows; their mathematics is elsewhere."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array

from bert_elmo_jax.gpu_switches import interpreted

PROCESSORS = 132  # of an H100 and an H200; another number costs time only
# The programs of each kernel and the warps of each program, as `experiments.benchmarks.gpu_kernels` found them best.
# So many programs run at once, and each goes through its share of the rows.
LAUNCH = {
    "drop_add_norm": (16 * PROCESSORS, 2),
    "drop_add_norm_back": (4 * PROCESSORS, 4),
    "bias_gelu": (16 * PROCESSORS, 4),
    "bias_gelu_back": (8 * PROCESSORS, 4),
    "merge_heads": (4 * PROCESSORS, 4),
    "row_losses": (0, 4),  # a program for each row
}


def rows_per_program(name: str, rows: int, fewest: int = 8) -> int:
    """Return how many rows a program of this kernel goes through."""
    return max(fewest, pl.cdiv(rows, LAUNCH[name][0]))


def run(
    kernel: Callable[..., None], inputs: Sequence[tuple[Array, Any]], outputs: Sequence[tuple[Any, Any]],
    *, grid: tuple[int, ...], name: str,
) -> Any:  # fmt: skip
    """Run a kernel on every block of arrays that come with their block; return the outputs."""
    extra: dict[str, Any] = {"compiler_params": triton.CompilerParams(num_warps=LAUNCH[name][1], num_stages=1)}
    call = pl.pallas_call(
        kernel, grid=grid, in_specs=[spec for _, spec in inputs], out_specs=[spec for _, spec in outputs],
        out_shape=[shape for shape, _ in outputs], name=name, **({"interpret": True} if interpreted() else extra),
    )  # fmt: skip
    return call(*(array for array, _ in inputs))


class Columns:
    """Some columns of a row, padded to a power of two as Triton needs it; the padding is neither read nor written."""

    def __init__(self, size: int, start: Any = 0, width: int | None = None):
        self.padded = pl.next_power_of_2(size if width is None else width)
        self.numbers = start + jnp.arange(self.padded, dtype=jnp.int32)
        self.valid = None if size % self.padded == 0 else self.numbers < size

    def load(self, ref: Any, row: Any) -> Array:
        """Return a row in its own type, with zeros in the padding."""
        place = ref.at[row, self.numbers]
        return triton.load(place) if self.valid is None else triton.load(place, mask=self.valid, other=0)

    def store(self, ref: Any, row: Any, values: Array, shift: int = 0) -> None:
        """Write a row in the type of the array, `shift` columns further to the right."""
        triton.store(ref.at[row, self.numbers + shift], values.astype(ref.dtype), mask=self.valid)

    def only_valid(self, values: Array) -> Array:
        """Return the values, with zeros in the padding."""
        return values if self.valid is None else jnp.where(self.valid, values, jnp.zeros_like(values))


def over_rows(
    total: int, block: int, load: Callable[[Any], Any], body: Callable[[Any, Any, Any], Any], start: Any
) -> Any:
    """Fold `body(row, load(row), so_far)` over the rows of this program's block; the last block may have fewer.

    The next row is loaded before this one is computed, so that the memory is never waited for.
    """
    rows: Any = jnp.minimum(block, total - pl.program_id(0) * block) if total % block else block

    def one(row: Any, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        loaded, so_far = carried
        following = load(jnp.minimum(row + 1, rows - 1))
        return following, body(row, loaded, so_far)

    return lax.fori_loop(0, rows, one, (load(0), start))[1]
