"""Pooling, softmax and attention over the real positions of each row.

Padding must be finite and then affects neither values nor gradients. A row without a real position gives zeros.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LOW = -1e30  # below every score, but finite, because -inf - -inf is NaN


def masked_softmax(scores: Float[Array, "*B T"], real: Bool[Array, "*C T"]) -> Float[Array, "*B T"]:
    """Return the softmax over the real positions of the last axis.

    >>> masked_softmax(jnp.zeros((2, 3)), jnp.array([[True, True, False], [False] * 3])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    real = jnp.broadcast_to(real, scores.shape)
    scores = jnp.where(real, scores, LOW)
    odds = jnp.where(real, jnp.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    total = odds.sum(axis=-1, keepdims=True)
    return odds / jnp.where(total > 0, total, 1.0)


def mean_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the mean over each row's real positions."""
    count = jnp.maximum(real.sum(axis=1), 1).astype(x.dtype)
    return jnp.where(real[..., None], x, 0.0).sum(axis=1) / count[:, None]


def max_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the elementwise maximum over each row's real positions."""
    largest = jnp.where(real[..., None], x, LOW).max(axis=1)
    return jnp.where(real.any(axis=1)[:, None], largest, 0.0)


def min_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the elementwise minimum over each row's real positions."""
    return -max_pool(-x, real)


def align(x: Float[Array, "B S D"], other: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B S D"]:
    """Attend from each position of `x` to the real positions of `other` by dot products; zeros if there are none.

    >>> x, other = jnp.array([[[9.0, 0.0]]]), jnp.array([[[9.0, 1.0], [-9.0, 5.0], [99.0, 0.0]]])
    >>> align(x, other, jnp.array([[True, True, False]])).tolist()
    [[[9.0, 1.0]]]
    """
    shares = masked_softmax(jnp.einsum("bsd,btd->bst", x, other), real[:, None, :])
    return jnp.einsum("bst,btd->bsd", shares, other)
