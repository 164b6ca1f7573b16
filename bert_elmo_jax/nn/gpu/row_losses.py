"""Cross entropy and accuracy of each row of logits from one pass over them; XLA takes four.

The gradient is the one of `losses.cross_entropy`, which is one pass already. A vocabulary such as GPT-2's 50,257 pieces
leaves the rows of logits unaligned, and a GPU has only slow products for such rows, so columns may be added.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jaxtyping import Array, Bool, Float, Float32, Int

from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.losses.cross_entropy import Sums, accuracy, cross_entropy, inside, log_loss_backward
from bert_elmo_jax.nn.gpu.launch import Columns, run

WIDTH = 4096  # columns at a time
EVEN = 64  # columns are added up to a multiple of it


def add_columns(words: Float[Array, "V D"], head: Mapping[str, Any]) -> tuple[Array, dict[str, Any]]:
    """Return a word table and the parameters of a head as of a vocabulary of a multiple of 64, with zeros added.

    >>> words, head = add_columns(jnp.ones((100, 2)), {"bias": jnp.ones(100), "norm": {"bias": jnp.ones(2)}})
    >>> words.shape, head["bias"].shape, float(head["bias"].sum())
    ((128, 2), (128,), 100.0)
    """
    size, more = len(words), -len(words) % EVEN

    def widen(values: Any) -> Any:
        if not hasattr(values, "shape") or values.shape[-1] != size:
            return values
        return jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, more)])

    wide = {name: widen(value) if name in ("bias", "kernel") else value for name, value in head.items()}
    return jnp.pad(words, ((0, more), (0, 0))), wide


def cross_entropy_and_accuracy(
    logits: Float[Array, "*B V"],
    targets: Int[Array, "*B"],
    weights: Float[Array, "*B"] | Int[Array, "*B"],
    size: int | None = None,
) -> tuple[Sums, Sums]:
    """Return `losses.cross_entropy` and `losses.accuracy`; logits from `size` on are none, as of `add_columns`."""
    if not uses("row_losses"):
        return cross_entropy(logits, targets, weights), accuracy(logits, targets, weights)
    weights = weights.astype(jnp.float32)
    counts, total = weights != 0, weights.sum()
    size = size or logits.shape[-1]
    losses, hits = _log_loss(logits, inside(targets, counts, size), counts, size)
    return (jnp.sum(weights * losses), total), (jnp.sum(weights * hits), total)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _log_loss(logits: Array, places: Array, counts: Bool[Array, "*B"], size: int) -> tuple[Array, Array]:
    """Return −log softmax(logits) at `places`, 0 where nothing counts, and 1 where it is the largest."""
    return _forward(logits, places, counts, size)[0]


def _forward(logits: Array, places: Array, counts: Array, size: int) -> tuple[tuple[Array, Array], Any]:
    rows = logits.reshape(-1, logits.shape[-1])
    normaliser, chosen, best = (x.reshape(places.shape) for x in row_losses(rows, places.ravel(), size))
    losses = jnp.where(counts, normaliser - chosen, 0.0)
    hits = (counts & (best == places)).astype(jnp.float32)
    return (losses, hits), (logits, places, counts, normaliser)


def _backward(size: int, residuals: Any, gradients: tuple[Array, Array]) -> tuple[Array, None, None]:
    gradient, _, _ = log_loss_backward(residuals, gradients[0])
    if size < gradient.shape[-1]:
        column = lax.broadcasted_iota(jnp.int32, gradient.shape, gradient.ndim - 1)
        gradient = jnp.where(column < size, gradient, jnp.zeros_like(gradient))
    return gradient, None, None


_log_loss.defvjp(_forward, _backward)


def row_losses(
    logits: Float32[Array, "N V"], targets: Int[Array, " N"], size: int | None = None
) -> tuple[Array, Array, Array]:
    """Return the log of the sum of exponentials of each row, the target's logit, and the first place of the largest.

    A target outside the vocabulary, whose `size` may be less than there are columns, has the logit NaN.
    """
    n, width = logits.shape
    v = size or width

    def kernel(logits_ref: Any, target_ref: Any, sum_ref: Any, chosen_ref: Any, best_ref: Any) -> None:
        target = target_ref[0]

        def chunk(number: Any, so_far: Any) -> Any:
            largest, total, chosen, best = so_far
            columns = Columns(v, number * WIDTH, WIDTH)
            values = columns.load(logits_ref, 0).astype(jnp.float32)
            values = values if columns.valid is None else jnp.where(columns.valid, values, -jnp.inf)
            top = values.max()
            place = jnp.where(values == top, columns.numbers, v).min()
            chosen += jnp.where(columns.numbers == target, values, 0.0).sum()
            new = jnp.maximum(largest, top)
            total = total * jnp.exp(largest - new) + jnp.exp(values - new).sum()
            return new, total, chosen, jnp.where(top > largest, place, best)

        start = (jnp.float32(-jnp.inf), jnp.float32(0), jnp.float32(0), jnp.int32(v))
        largest, total, chosen, best = lax.fori_loop(0, pl.cdiv(v, WIDTH), chunk, start)
        sum_ref[0], best_ref[0] = largest + jnp.log(total), best
        chosen_ref[0] = jnp.where((target >= 0) & (target < v), chosen, jnp.nan)

    number = pl.BlockSpec((1,), lambda i: (i,))
    shapes = [jax.ShapeDtypeStruct((n,), kind) for kind in (jnp.float32, jnp.float32, jnp.int32)]
    normaliser, chosen, best = run(
        kernel, [(logits, pl.BlockSpec((1, width), lambda i: (i, 0))), (targets.astype(jnp.int32), number)],
        [(shape, number) for shape in shapes], grid=(n,), name="row_losses",
    )  # fmt: skip
    return normaliser, chosen, best
