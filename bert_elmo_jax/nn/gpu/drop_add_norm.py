"""Bias, dropout, residual and norm as one kernel: `norm(x + dropout(y + bias))`, forward and backward.

Layers whose norms come first also need the sum, to make the next residual from it. XLA computes the statistics, the
sum and the gradients in several kernels, and each reads its inputs again. Here a row is read once. The numbers are
float32 from loading to storing; dropout keeps the elements that `nn.dropout` keeps.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, PRNGKeyArray

from bert_elmo_jax.nn.dropout import scramble
from bert_elmo_jax.nn.gpu.launch import Columns, over_rows, rows_per_program, run


class Rules(NamedTuple):
    """The settings of the computation."""

    rate: float  # of dropout
    eps: float
    returns_sum: bool = False  # the sum and its norm; otherwise the norm twice
    centred: bool = True  # a layer norm; otherwise a norm by the root of the mean square


def drop_add_norm(
    x: Float[Array, "*B D"],
    y: Float[Array, "*B D"],
    bias: Float[Array, " D"],
    scale: Float[Array, " D"],
    offset: Float[Array, " D"],
    key: PRNGKeyArray | None,
    rules: Rules,
) -> tuple[Float[Array, "*B D"], Float[Array, "*B D"]]:
    """Return `norm(x + dropout(y + bias))` twice, or the sum and its norm; without a key there is no dropout.

    If one of two equal results is multiplied and the other added, their gradients meet in the kernel instead of in one
    of their own.
    """
    n, d = math.prod(x.shape[:-1]), x.shape[-1]
    words = None
    if key is not None and rules.rate:
        words = jax.random.bits(key, (2, *x.shape[:-1], 1), jnp.uint32).reshape(2, n)  # as `nn.dropout` draws
    vectors = (jnp.asarray(v).astype(jnp.float32) for v in (bias, scale, offset))
    out = _drop_add_norm(x.reshape(n, d), y.reshape(n, d), *vectors, words, rules)
    return out[0].reshape(x.shape), out[1].reshape(x.shape)


@partial(jax.custom_vjp, nondiff_argnums=(6,))
def _drop_add_norm(
    x: Array, y: Array, bias: Array, scale: Array, offset: Array, words: Array | None, rules: Rules
) -> tuple[Array, Array]:
    return _forward(x, y, bias, scale, offset, words, rules)[0]


def _forward(
    x: Array, y: Array, bias: Array, scale: Array, offset: Array, words: Array | None, rules: Rules
) -> tuple[tuple[Array, Array], Any]:
    total, out, mean, inverse = run_forward(x, y, bias, scale, offset, words, rules)
    return (total if rules.returns_sum else out, out), (total, mean, inverse, scale, words)


def _backward(rules: Rules, residuals: Any, gradients: tuple[Array, Array]) -> tuple[Any, ...]:
    total, mean, inverse, scale, words = residuals
    to_x, to_y, sums = run_backward(*gradients, total, mean, inverse, scale, words, rules)
    to_bias, to_scale, to_offset = sums.sum(0)
    return to_x, to_y, to_bias, to_scale, to_offset, None


_drop_add_norm.defvjp(_forward, _backward)


# The mathematics of one row.


def kept_elements(columns: Array, first: Array, second: Array, rate: float) -> Array:
    """Return which elements of a row dropout keeps, as `nn.dropout.keep` does."""
    hashed = scramble(scramble(columns.astype(jnp.uint32) ^ first) + second)
    return hashed >= jnp.uint32(min(round(rate * 2**32), 2**32 - 1))


def normalise_row(total: Array, size: int, rules: Rules, columns: Columns) -> tuple[Array, Array, Array]:
    """Return a row of mean 0 and variance 1, its mean, and the inverse of its deviation."""
    mean = total.sum() / size if rules.centred else jnp.zeros((), jnp.float32)
    centred = columns.only_valid(total - mean)
    inverse = lax.rsqrt((centred * centred).sum() / size + rules.eps)
    return centred * inverse, mean, inverse


def normalise_row_backward(gradient: Array, normal: Array, inverse: Array, size: int, rules: Rules) -> Array:
    """Return the gradient of `normalise_row`; `gradient` is zero in the padding."""
    along = normal * ((gradient * normal).sum() / size)
    return inverse * ((gradient - gradient.sum() / size if rules.centred else gradient) - along)


# The kernels.


def run_forward(
    x: Array, y: Array, bias: Array, scale: Array, offset: Array, words: Array | None, rules: Rules
) -> tuple[Array, Array, Array, Array]:
    """Return the sum, its normalised rows, their means and the inverses of their deviations."""
    n, d = x.shape
    block = rows_per_program("drop_add_norm", n)

    def kernel(x_ref: Any, y_ref: Any, bias_ref: Any, scale_ref: Any, offset_ref: Any, *refs: Any) -> None:
        *words_ref, sum_ref, out_ref, mean_ref, inverse_ref = refs
        columns = Columns(d)
        shift, stretch, move = (columns.load(ref, 0) for ref in (bias_ref, scale_ref, offset_ref))

        def load(r: Any) -> Any:
            return columns.load(x_ref, r), columns.load(y_ref, r), load_words(words_ref, r)

        def row(r: Any, loaded: Any, _: None) -> None:
            residual, branch, drawn = loaded
            branch = drop_row(branch.astype(jnp.float32) + shift, columns, drawn, rules.rate)
            total = (residual.astype(jnp.float32) + branch).astype(x.dtype)
            columns.store(sum_ref, r, total)
            normal, mean, inverse = normalise_row(columns.only_valid(total.astype(jnp.float32)), d, rules, columns)
            columns.store(out_ref, r, normal * stretch + move)
            mean_ref[r], inverse_ref[r] = mean, inverse

        over_rows(n, block, load, row, None)

    rows, vector, number, pairs = blocks_of(block, d)
    inputs = [(x, rows), (y, rows), *((v[None], vector) for v in (bias, scale, offset))]
    inputs += [] if words is None else [(words, pairs)]
    wide, narrow = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((n,), jnp.float32)
    outputs = [(wide, rows), (wide, rows), (narrow, number), (narrow, number)]
    sums, out, mean, inverse = run(kernel, inputs, outputs, grid=(pl.cdiv(n, block),), name="drop_add_norm")
    return sums, out, mean, inverse


def run_backward(
    first: Array, second: Array, total: Array, mean: Array, inverse: Array, scale: Array, words: Array | None,
    rules: Rules,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of `x` and `y`, and partial ones of bias, scale and offset, to be added [parts, 3, D]."""
    (n, d), drops = total.shape, words is not None
    block = rows_per_program("drop_add_norm_back", n)

    def kernel(
        first_ref: Any, second_ref: Any, sum_ref: Any, mean_ref: Any, inverse_ref: Any, scale_ref: Any, *refs: Any
    ) -> None:
        words_ref, (x_ref, *y_ref, parts_ref) = refs[:drops], refs[drops:]
        columns = Columns(d)
        stretch = columns.load(scale_ref, 0)

        def load(r: Any) -> Any:
            vectors = tuple(columns.load(ref, r) for ref in (first_ref, second_ref, sum_ref))
            return vectors, (mean_ref[r], inverse_ref[r]), load_words(words_ref, r)

        def row(r: Any, loaded: Any, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            (one, other, total), (mean, inverse), drawn = loaded
            one, gradient = one.astype(jnp.float32), other.astype(jnp.float32)
            gradient = gradient if rules.returns_sum else one + gradient
            normal = (total.astype(jnp.float32) - mean) * inverse
            to_x = normalise_row_backward(gradient * stretch, normal, inverse, d, rules)
            to_x = one + to_x if rules.returns_sum else to_x
            columns.store(x_ref, r, to_x)
            to_y = drop_row(to_x, columns, drawn, rules.rate)
            for ref in y_ref:  # without dropout, it is the gradient of `x`
                columns.store(ref, r, to_y)
            return sums[0] + to_y, sums[1] + gradient * normal, sums[2] + gradient

        zeros = jnp.zeros(columns.padded, jnp.float32)
        for place, part in enumerate(over_rows(n, block, load, row, (zeros, zeros, zeros))):
            columns.store(parts_ref, place, part)

    parts = pl.cdiv(n, block)
    rows, vector, number, pairs = blocks_of(block, d)
    inputs = [(first, rows), (second, rows), (total, rows), (mean, number), (inverse, number), (scale[None], vector)]
    inputs += [] if words is None else [(words, pairs)]
    wide = jax.ShapeDtypeStruct(total.shape, total.dtype)
    outputs = [(wide, rows)] * (1 + drops)
    outputs += [(jax.ShapeDtypeStruct((3 * parts, d), jnp.float32), pl.BlockSpec((3, d), lambda i: (i, 0)))]
    to_x, *to_y, sums = run(kernel, inputs, outputs, grid=(parts,), name="drop_add_norm_back")
    return to_x, to_y[0] if drops else to_x, sums.reshape(parts, 3, d)


def load_words(refs: Sequence[Any], r: Any) -> tuple[Array, ...]:
    """Return the two words of row `r`, if there is dropout."""
    return tuple(ref[place, r] for ref in refs for place in range(2))


def drop_row(row: Array, columns: Columns, words: Sequence[Array], rate: float) -> Array:
    """Return a row after dropout, if there are words to draw from."""
    if not words:
        return row
    keep = kept_elements(columns.numbers, words[0], words[1], rate)
    return jnp.where(keep, row * (1 / (1 - rate)), jnp.zeros_like(row))


def blocks_of(block: int, d: int) -> tuple[Any, Any, Any, Any]:
    """Return the blocks of rows [N, D], of one vector [1, D], of numbers per row [N], and of words per row [2, N]."""
    return (
        pl.BlockSpec((block, d), lambda i: (i, 0)),
        pl.BlockSpec((1, d), lambda i: (0, 0)),
        pl.BlockSpec((block,), lambda i: (i,)),
        pl.BlockSpec((2, block), lambda i: (0, i)),
    )
