"""Bias and gelu as one kernel, `gelu(y + bias)`, whose backward pass also sums the gradient of the bias.

Φ is the sigmoid of `w · P(w²)` with a short polynomial P: within one rounding of 16 bits of x · Φ(x), and half of the
instructions of erf. In float32, the kernel computes erf. GPT's gelu with a tanh is such a sigmoid itself, with two
coefficients. The backward pass computes the slope again from `y`, which takes less time than reading it.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from bert_elmo_jax.nn.gpu.launch import Columns, over_rows, rows_per_program, run

# The best polynomial for the error of Φ relative to Φ(-|w|), where |w| is at most LARGEST; beyond, P stays.
COEFFICIENTS = (1.59361627, 7.49255583e-2, -7.85017790e-4, -8.47597550e-6, 6.46554271e-7, -8.52924453e-9)
LARGEST = 5.5
TANH = (2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715)
SATURATED = 11.0  # from here on, the sigmoid of GPT's gelu is 0 or 1 in float32
BY_TANH = ("gelu_new", "gelu_fast", "gelu_pytorch_tanh")  # names of GPT's activation
WIDTH = 1024  # columns of a program


def bias_gelu(y: Float[Array, "*B D"], bias: Float[Array, " D"], by_tanh: bool = False) -> Float[Array, "*B D"]:
    """Return `gelu(y + bias)`; `by_tanh` is the approximation of GPT, `gelu_new`."""
    d = y.shape[-1]
    out: Array = _bias_gelu(y.reshape(math.prod(y.shape[:-1]), d), jnp.asarray(bias).astype(jnp.float32), by_tanh)
    return out.reshape(y.shape)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _bias_gelu(y: Array, bias: Array, by_tanh: bool) -> Array:
    return run_forward(y, bias, by_tanh)


def _forward(y: Array, bias: Array, by_tanh: bool) -> tuple[Array, tuple[Array, Array]]:
    return run_forward(y, bias, by_tanh), (y, bias)


def _backward(by_tanh: bool, residuals: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    to_y, parts = run_backward(gradient, *residuals, by_tanh)
    return to_y, parts.sum(0)


_bias_gelu.defvjp(_forward, _backward)


# The mathematics of one element.


def normal_cdf(w: Array, short: bool) -> Array:
    """Return Φ(w) of float32 numbers; `short` is for results that are rounded to 16 bits."""
    if not short:
        return 0.5 * (1 + lax.erf(w * math.sqrt(0.5)))
    square = jnp.minimum(w * w, LARGEST**2)
    slope = jnp.full_like(w, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2::-1]:
        slope = slope * square + coefficient
    return 1 / (1 + jnp.exp2(w * slope * -math.log2(math.e)))


def gelu_slope(w: Array, short: bool) -> Array:
    """Return the slope of w · Φ(w)."""
    density = jnp.exp2(w * w * (-0.5 * math.log2(math.e))) * (1 / math.sqrt(2 * math.pi))
    return normal_cdf(w, short) + w * density


def tanh_gate(w: Array) -> Array:
    """Return what GPT's gelu multiplies w by: 0.5 · (1 + tanh(…)), which is a sigmoid."""
    square = jnp.minimum(w * w, SATURATED**2)
    return 1 / (1 + jnp.exp2(w * (TANH[0] + TANH[1] * square) * -math.log2(math.e)))


def tanh_slope(w: Array) -> Array:
    """Return the slope of w · tanh_gate(w)."""
    gate = tanh_gate(w)
    return gate + w * gate * (1 - gate) * (TANH[0] + 3 * TANH[1] * jnp.minimum(w * w, SATURATED**2))


# The kernels.


def run_forward(y: Array, bias: Array, by_tanh: bool) -> Array:
    """Return `gelu(y + bias)` of rows."""
    (n, d), short = y.shape, y.dtype.itemsize < 4
    block = rows_per_program("bias_gelu", n)

    def kernel(y_ref: Any, bias_ref: Any, out_ref: Any) -> None:
        columns = Columns(d, pl.program_id(1) * WIDTH, WIDTH)
        shift = columns.load(bias_ref, 0)

        def row(r: Any, product: Array, _: None) -> None:
            w = product.astype(jnp.float32) + shift
            columns.store(out_ref, r, w * (tanh_gate(w) if by_tanh else normal_cdf(w, short)))

        over_rows(n, block, lambda r: columns.load(y_ref, r), row, None)

    rows, vector = pl.BlockSpec((block, d), lambda i, j: (i, 0)), pl.BlockSpec((1, d), lambda i, j: (0, 0))
    outputs = [(jax.ShapeDtypeStruct(y.shape, y.dtype), rows)]
    grid = (pl.cdiv(n, block), pl.cdiv(d, WIDTH))
    (out,) = run(kernel, [(y, rows), (bias[None], vector)], outputs, grid=grid, name="bias_gelu")
    return out


def run_backward(gradient: Array, y: Array, bias: Array, by_tanh: bool) -> tuple[Array, Array]:
    """Return the gradient of `y`, and parts of the bias's, to be added [parts, D]."""
    (n, d), short = y.shape, y.dtype.itemsize < 4
    block = rows_per_program("bias_gelu_back", n)

    def kernel(gradient_ref: Any, y_ref: Any, bias_ref: Any, out_ref: Any, parts_ref: Any) -> None:
        columns = Columns(d, pl.program_id(1) * WIDTH, WIDTH)
        shift = columns.load(bias_ref, 0)

        def row(r: Any, loaded: tuple[Array, Array], total: Array) -> Array:
            w = loaded[1].astype(jnp.float32) + shift
            to_y = loaded[0].astype(jnp.float32) * (tanh_slope(w) if by_tanh else gelu_slope(w, short))
            columns.store(out_ref, r, to_y)
            return total + to_y

        def load(r: Any) -> tuple[Array, Array]:
            return columns.load(gradient_ref, r), columns.load(y_ref, r)

        zeros = jnp.zeros(columns.padded, jnp.float32)
        columns.store(parts_ref, 0, over_rows(n, block, load, row, zeros))

    parts = pl.cdiv(n, block)
    rows, vector = pl.BlockSpec((block, d), lambda i, j: (i, 0)), pl.BlockSpec((1, d), lambda i, j: (0, 0))
    outputs = [
        (jax.ShapeDtypeStruct(y.shape, y.dtype), rows),
        (jax.ShapeDtypeStruct((parts, d), jnp.float32), pl.BlockSpec((1, d), lambda i, j: (i, 0))),
    ]
    inputs = [(gradient, rows), (y, rows), (bias[None], vector)]
    out, sums = run(kernel, inputs, outputs, grid=(parts, pl.cdiv(d, WIDTH)), name="bias_gelu_back")
    return out, sums
