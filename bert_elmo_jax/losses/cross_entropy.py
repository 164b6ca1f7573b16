"""Cross entropies, accuracy, and the loss of answer spans.

All return sums `(total, weight)`, so that devices and accumulation steps can be added before the division. Positions
of weight zero affect neither values nor gradients, even with NaN logits or a target of -100.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int

Sums = tuple[Float32[Array, ""], Float32[Array, ""]]


def cross_entropy(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> Sums:
    """Return Σ weight · −log softmax(logits)[target], and Σ weight, computed in float32.

    A target outside the vocabulary makes the total NaN.

    >>> logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    >>> total, weight = cross_entropy(logits, jnp.array([1, -100]), jnp.array([1.0, 0.0]))
    >>> round(float(total), 4), float(weight)
    (1.3863, 1.0)
    """
    weights = weights.astype(jnp.float32)
    counts = weights != 0
    losses = _log_loss(logits, inside(targets, counts, logits.shape[-1]), counts)
    return jnp.sum(weights * losses), weights.sum()


@jax.custom_vjp
def _log_loss(
    logits: Float[Array, "*B V"], places: Int[Array, "*B"], counts: Bool[Array, "*B"]
) -> Float32[Array, "*B"]:
    """Return −log softmax(logits) at `places`; 0 where nothing counts."""
    return _log_loss_forward(logits, places, counts)[0]


def _log_loss_forward(logits: Array, places: Array, counts: Array) -> tuple[Array, Any]:
    # Masked before the softmax, because a NaN that is masked later still poisons the gradient.
    wide = jnp.where(counts[..., None], logits.astype(jnp.float32), jnp.float32(0))
    normaliser = jax.nn.logsumexp(wide, axis=-1)
    chosen = jnp.take_along_axis(wide, places[..., None], axis=-1, mode="fill")[..., 0]
    return jnp.where(counts, normaliser - chosen, 0.0), (logits, places, counts, normaliser)


def log_loss_backward(saved: Any, g: Array) -> tuple[Array, None, None]:
    """Return the gradient in one pass over the logits; JAX's own takes three, one of them to add at the targets."""
    logits, places, counts, normaliser = saved
    share = jnp.exp(logits.astype(jnp.float32) - normaliser[..., None])
    target = lax.broadcasted_iota(places.dtype, logits.shape, logits.ndim - 1) == places[..., None]
    gradient = g[..., None] * (share - target.astype(share.dtype))
    return jnp.where(counts[..., None], gradient, 0.0).astype(logits.dtype), None, None


_log_loss.defvjp(_log_loss_forward, log_loss_backward)


def smoothed_cross_entropy(
    logits: Float[Array, "*B V"],
    targets: Int[Array, "*B"],
    weights: Float[Array, "*B"] | Int[Array, "*B"],
    smoothing: float,
) -> Sums:
    """Return the cross entropy with smoothed targets, and Σ weight, computed in float32.

    The target has the probability `1 - smoothing`, and all V classes, the target included, share `smoothing` equally:
    `(1 - smoothing) · −log p(target) + smoothing · mean over classes of −log p`, as PyTorch defines it. (Some
    implementations leave the target, or the padding, out of the share.) See `cross_entropy` for masked positions.

    >>> logits = jnp.log(jnp.array([[0.5, 0.25, 0.25]]))
    >>> total, weight = smoothed_cross_entropy(logits, jnp.array([0]), jnp.array([1.0]), 0.3)
    >>> round(float(total), 4)  # 0.7 · log 2 + 0.1 · (log 2 + log 4 + log 4)
    0.8318
    """
    total, weight = cross_entropy(logits, targets, weights)
    weights = weights.astype(jnp.float32)
    logits = jnp.where(weights[..., None] != 0, logits.astype(jnp.float32), jnp.float32(0))
    uniform = jax.nn.logsumexp(logits, axis=-1) - logits.mean(axis=-1)
    return (1 - smoothing) * total + smoothing * jnp.sum(weights * uniform), weight


def binary_cross_entropy(
    logits: Float[Array, "*B"],
    targets: Bool[Array, "*B"],
    weights: Float[Array, "*B"] | Int[Array, "*B"] | Bool[Array, "*B"],
) -> Sums:
    """Return Σ weight · −log p(target), where p(True) is the sigmoid of the logit, and Σ weight, computed in float32.

    >>> logits = jnp.log(jnp.array([3.0, 3.0, 1.0]))
    >>> total, weight = binary_cross_entropy(logits, jnp.array([True, False, True]), jnp.array([1.0, 1.0, 0.0]))
    >>> round(float(jnp.exp(-total)), 4), float(weight)
    (0.1875, 2.0)
    """
    weights = weights.astype(jnp.float32)
    # Masked first, because a NaN that is masked later still poisons the gradient.
    logits = jnp.where(weights != 0, logits.astype(jnp.float32), jnp.float32(0))
    return jnp.sum(weights * jax.nn.softplus(jnp.where(targets, -logits, logits))), weights.sum()


def accuracy(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> Sums:
    """Return the weight of the positions whose largest logit is the target's, and the total weight.

    >>> right, weight = accuracy(jnp.eye(3), jnp.array([0, 1, 0]), jnp.array([1.0, 1.0, 2.0]))
    >>> float(right), float(weight)
    (2.0, 4.0)
    """
    weights = weights.astype(jnp.float32)
    chosen = _chosen(logits, targets, weights != 0)
    # argmax is slow on a CPU: it took a quarter of the training time of a head. Like argmax, prefer the first of ties.
    place, target = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1), targets[..., None]
    behind = (logits < chosen) | ((logits == chosen) & (place > target))
    behind |= place == target  # a compiler may round the same logit differently in two places
    hit = jnp.all(behind, axis=-1)
    return jnp.sum(jnp.where(hit, weights, jnp.zeros_like(weights))), weights.sum()


def _chosen(logits: Float[Array, "*B V"], targets: Int[Array, "*B"], counts: Bool[Array, "*B"]) -> Float[Array, "*B 1"]:
    """Return the targets' logits; NaN for a target outside the vocabulary."""
    places = inside(targets, counts, logits.shape[-1])
    return jnp.take_along_axis(logits, places[..., None], axis=-1, mode="fill")


def inside(targets: Int[Array, "*B"], counts: Bool[Array, "*B"], size: int) -> Int[Array, "*B"]:
    """Return indices of the targets: 0 where ignored, and `size` (which reads as NaN) where out of range."""
    # JAX would count negative indices from the end.
    places = jnp.where((targets >= 0) & (targets < size), targets, jnp.full_like(targets, size))
    return jnp.where(counts, places, jnp.zeros_like(targets))


def answer_loss(
    start: Float[Array, "B T"],
    end: Float[Array, "B T"],
    none: Float[Array, " B"] | None,
    answers: Int[Array, "B G 2"],
    weights: Float[Array, " B"],
) -> Sums:
    """Return Σ weight · −log p(any right answer), and Σ weight: Clark and Gardner 2018, arXiv:1710.10723.

    One softmax covers all pairs of a start and an end, and "no answer" with its own score.
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
    answered = right.any(axis=1)
    chosen = jax.nn.logsumexp(jnp.where(right | ~answered[:, None], joint, -jnp.inf), axis=1)
    every = jax.nn.logsumexp(start, axis=1) + jax.nn.logsumexp(end, axis=1)
    if none is not None:
        none = jnp.where(counts, none.astype(jnp.float32), 0.0)
        chosen, every = jnp.where(answered, chosen, none), jnp.logaddexp(every, none)
    return jnp.sum(weights * (every - chosen)), weights.sum()


def _at(scores: Float32[Array, "B T"], places: Int[Array, "B G"], right: Array) -> Float32[Array, "B G"]:
    """Return the scores at these positions; NaN outside the text."""
    return jnp.take_along_axis(scores, inside(places, right, scores.shape[1]), axis=1, mode="fill")
