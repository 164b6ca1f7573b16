"""The loss of answer spans, with any number of right answers: Clark and Gardner 2018, arXiv:1710.10723.

One softmax covers all pairs of a start and an end, and "no answer" with its own score.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.losses.cross_entropy import Sums, inside


def answer_loss(
    start: Float[Array, "B T"],
    end: Float[Array, "B T"],
    none: Float[Array, " B"] | None,
    answers: Int[Array, "B G 2"],
    weights: Float[Array, " B"],
) -> Sums:
    """Return Σ weight · −log p(any right answer), and Σ weight.

    `answers` are distinct (first, last) positions, padded with -1. p(first, last) ∝ exp(start[first] + end[last]), and
    a row without an answer has p ∝ exp(none). If `none` is None, such rows get no weight, and the loss of one answer is
    the sum of the cross entropies of start and end.

    >>> start, end, one = jnp.log(jnp.array([[3.0, 1.0]])), jnp.log(jnp.array([[1.0, 1.0]])), jnp.ones(1)
    >>> total, weight = answer_loss(start, end, None, jnp.array([[[0, 0], [0, 1]]]), one)
    >>> round(float(jnp.exp(-total)), 4), float(weight)
    (0.75, 1.0)
    """
    right = answers[..., 0] >= 0
    weights = weights.astype(jnp.float32)
    if none is None:
        weights = jnp.where(right.any(axis=1), weights, 0.0)
    counts = weights != 0
    # Masked first, because a NaN that is masked later still poisons the gradient.
    start, end = (jnp.where(counts[:, None], side.astype(jnp.float32), 0.0) for side in (start, end))
    right = right & counts[:, None]
    joint = _at(start, answers[..., 0], right) + _at(end, answers[..., 1], right)
    # Missing answers score -inf, except in rows without any, where the gradient would be NaN.
    some = right.any(axis=1)
    chosen = jax.nn.logsumexp(jnp.where(right | ~some[:, None], joint, -jnp.inf), axis=1)
    every = jax.nn.logsumexp(start, axis=1) + jax.nn.logsumexp(end, axis=1)
    if none is not None:
        none = jnp.where(counts, none.astype(jnp.float32), 0.0)
        chosen, every = jnp.where(some, chosen, none), jnp.logaddexp(every, none)
    return jnp.sum(weights * (every - chosen)), weights.sum()


def _at(scores: Float32[Array, "B T"], places: Int[Array, "B G"], right: Array) -> Float32[Array, "B G"]:
    """Return the scores at these positions; NaN outside the text."""
    return jnp.take_along_axis(scores, inside(places, right, scores.shape[1]), axis=1, mode="fill")
