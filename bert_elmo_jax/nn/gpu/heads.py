"""Queries, keys and values from one product, whose gradients are joined, masked and summed in one kernel."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn.gpu.launch import Columns, over_rows, rows_per_program, run


def split_heads(
    together: Float[Array, "N W3"], bias: Float[Array, " W3"], real: Int[Array, " N"] | None
) -> tuple[Array, Array, Array]:
    """Return three arrays [N, W] of `together + bias`.

    Rows where `real` is 0 get no gradient: cuDNN leaves it undefined there.
    """
    query, key, value = _split(together, bias.astype(jnp.float32), real)
    return query, key, value


@jax.custom_vjp
def _split(together: Array, bias: Array, real: Array | None) -> tuple[Array, ...]:
    return tuple(jnp.split((together.astype(jnp.float32) + bias[None]).astype(together.dtype), 3, axis=1))


def _backward(real: Array | None, gradients: tuple[Array, Array, Array]) -> tuple[Array, Array, None]:
    together, parts = merge(*gradients, real)
    return together, parts.sum(0), None


_split.defvjp(lambda together, bias, real: (_split(together, bias, real), real), _backward)


def merge(query: Array, key: Array, value: Array, real: Array | None) -> tuple[Array, Array]:
    """Return the three side by side [N, 3W], zero where `real` is 0, and partial sums [parts, 3W]."""
    n, w = query.shape
    block = rows_per_program("merge_heads", n)

    def kernel(*refs: Any) -> None:
        sources, (*real_ref, out_ref, parts_ref) = refs[:3], refs[3:]
        columns = Columns(w)

        def load(r: Any) -> Any:
            return tuple(columns.load(ref, r) for ref in sources), tuple(ref[r] for ref in real_ref)

        def row(r: Any, loaded: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
            values, flags = loaded
            for flag in flags:
                values = tuple(jnp.where(flag > 0, one, jnp.zeros_like(one)) for one in values)
            for place, one in enumerate(values):
                columns.store(out_ref, r, one, place * w)
            return tuple(total + one.astype(jnp.float32) for total, one in zip(sums, values))

        zeros = jnp.zeros(columns.padded, jnp.float32)
        for place, total in enumerate(over_rows(n, block, load, row, (zeros, zeros, zeros))):
            columns.store(parts_ref, 0, total, place * w)

    parts = pl.cdiv(n, block)
    rows = partial(pl.BlockSpec, index_map=lambda i: (i, 0))
    inputs = [(one, rows((block, w))) for one in (query, key, value)]
    inputs += [] if real is None else [(real, pl.BlockSpec((block,), lambda i: (i,)))]
    outputs = [
        (jax.ShapeDtypeStruct((n, 3 * w), query.dtype), rows((block, 3 * w))),
        (jax.ShapeDtypeStruct((parts, 3 * w), jnp.float32), rows((1, 3 * w))),
    ]
    together, sums = run(kernel, inputs, outputs, grid=(parts,), name="merge_heads")
    return together, sums
