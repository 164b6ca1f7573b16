"""Losses between a model and its teacher: soft cross entropy, and the cosine distance of hidden states.

Both return sums `(total, weight)`. The teacher's side has no gradient. Positions of weight zero affect neither values
nor gradients, even with NaN on either side.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int

from bert_elmo_jax.losses.cross_entropy import Sums

SMALLEST = 1e-24  # of a squared norm, so that a vector of zeros has the cosine 0 and a finite gradient


def soft_cross_entropy(
    logits: Float[Array, "*B V"],
    teacher: Float[Array, "*B V"],
    weights: Float[Array, "*B"] | Int[Array, "*B"],
    temperature: float,
) -> Sums:
    """Return T² · Σ weight · −Σᵥ pᵥ log qᵥ, and Σ weight, with p and q the softmax of `teacher` / T and `logits` / T.

    The factor T² keeps the size of the gradient for every temperature T: Hinton et al. 2015, arXiv:1503.02531. The loss
    is never below T² times the entropy of p. Computed in float32.

    >>> logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    >>> total, weight = soft_cross_entropy(logits, logits, jnp.array([1.0, 0.0]), 1.0)
    >>> round(float(total), 4), float(weight)
    (1.0397, 1.0)
    """
    weights = weights.astype(jnp.float32)
    # Masked before the softmax, because a NaN that is masked later still poisons the gradient.
    ours, theirs = (_keep(side, weights != 0) / temperature for side in (logits, jax.lax.stop_gradient(teacher)))
    losses = jax.nn.logsumexp(ours, axis=-1) - jnp.sum(jax.nn.softmax(theirs, axis=-1) * ours, axis=-1)
    return temperature**2 * jnp.sum(weights * losses), weights.sum()


def cosine_distance(
    hidden: Float[Array, "*B D"], teacher: Float[Array, "*B D"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> Sums:
    """Return Σ weight · (1 − cos(hidden, teacher)), and Σ weight, computed in float32.

    >>> total, weight = cosine_distance(jnp.eye(2), jnp.array([[2.0, 0.0], [2.0, 0.0]]), jnp.ones(2))
    >>> float(total), float(weight)
    (1.0, 2.0)
    """
    weights = weights.astype(jnp.float32)
    ours, theirs = (_keep(side, weights != 0) for side in (hidden, jax.lax.stop_gradient(teacher)))
    cosines = jnp.sum(ours * theirs, axis=-1) * _inverse_norm(ours) * _inverse_norm(theirs)
    return jnp.sum(weights * (1 - cosines)), weights.sum()


def _keep(values: Float[Array, "*B D"], counts: Bool[Array, "*B"]) -> Float32[Array, "*B D"]:
    return jnp.where(counts[..., None], values.astype(jnp.float32), jnp.float32(0))


def _inverse_norm(vectors: Float32[Array, "*B D"]) -> Float32[Array, "*B"]:
    return jax.lax.rsqrt(jnp.maximum(jnp.sum(vectors**2, axis=-1), SMALLEST))
