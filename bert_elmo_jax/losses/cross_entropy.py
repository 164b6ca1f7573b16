"""Cross entropy and accuracy.

Both return sums `(total, weight)`, so that devices and accumulation steps can be added before the division. Positions
of weight zero affect neither values nor gradients, even with NaN logits or a target of -100.
"""

import jax
import jax.numpy as jnp
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
    # Masked before the softmax, because a NaN that is masked later still poisons the gradient.
    logits = jnp.where(counts[..., None], logits.astype(jnp.float32), jnp.float32(0))
    chosen = _chosen(logits, targets, counts)[..., 0]
    return jnp.sum(weights * (jax.nn.logsumexp(logits, axis=-1) - chosen)), weights.sum()


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
    kept = jnp.where((targets >= 0) & (targets < size), targets, jnp.full_like(targets, size))
    return jnp.where(counts, kept, jnp.zeros_like(targets))
