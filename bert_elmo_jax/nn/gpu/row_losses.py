"""Cross entropy and accuracy of each row of logits from one pass over them; XLA takes four.

The gradient is the one of `losses.cross_entropy`, which is one pass already.
"""

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


def cross_entropy_and_accuracy(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> tuple[Sums, Sums]:
    """Return `losses.cross_entropy` and `losses.accuracy`."""
    if not uses("row_losses"):
        return cross_entropy(logits, targets, weights), accuracy(logits, targets, weights)
    weights = weights.astype(jnp.float32)
    counts, total = weights != 0, weights.sum()
    places = inside(targets, counts, logits.shape[-1])
    losses, hits = _log_loss(logits, places, counts)
    return (jnp.sum(weights * losses), total), (jnp.sum(weights * hits), total)


@jax.custom_vjp
def _log_loss(logits: Array, places: Array, counts: Bool[Array, "*B"]) -> tuple[Array, Array]:
    """Return −log softmax(logits) at `places`, 0 where nothing counts, and 1 where it is the largest."""
    return _forward(logits, places, counts)[0]


def _forward(logits: Array, places: Array, counts: Array) -> tuple[tuple[Array, Array], Any]:
    shape = places.shape
    normaliser, chosen, best = (
        x.reshape(shape) for x in row_losses(logits.reshape(-1, logits.shape[-1]), places.ravel())
    )
    losses = jnp.where(counts, normaliser - chosen, 0.0)
    hits = (counts & (best == places)).astype(jnp.float32)
    return (losses, hits), (logits, places, counts, normaliser)


def _backward(residuals: Any, gradients: tuple[Array, Array]) -> tuple[Array, None, None]:
    return log_loss_backward(residuals, gradients[0])


_log_loss.defvjp(_forward, _backward)


def row_losses(logits: Float32[Array, "N V"], targets: Int[Array, " N"]) -> tuple[Array, Array, Array]:
    """Return the log of the sum of exponentials of each row, the target's logit, and the first place of the largest.

    A target outside the vocabulary has the logit NaN.
    """
    n, v = logits.shape

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
        kernel, [(logits, pl.BlockSpec((1, v), lambda i: (i, 0))), (targets.astype(jnp.int32), number)],
        [(shape, number) for shape in shapes], grid=(n,), name="row_losses",
    )  # fmt: skip
    return normaliser, chosen, best
