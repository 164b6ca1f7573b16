"""Cross entropy on gathered positions, and the accuracy beside it.

Each returns `(total, weight)`: sums, not means, so that devices and accumulation steps are added before one division.
What stands at a position of weight zero (NaN, a target of -100) takes no part, neither in value nor in gradient.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int

Sums = tuple[Float32[Array, ""], Float32[Array, ""]]


def cross_entropy(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> Sums:
    """Σ weight · −log softmax(logits)[target], and Σ weight; float32 inside, whatever the logits are.

    A target outside the vocabulary makes the total NaN. Predicting the next token needs nothing else: the targets are
    the tokens one further on, the weights 0 where there is none.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.losses import cross_entropy
    >>> logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    >>> total, weight = cross_entropy(logits, jnp.array([1, -100]), jnp.array([1.0, 0.0]))
    >>> round(float(total), 4), float(weight)
    (1.3863, 1.0)
    """
    weights = weights.astype(jnp.float32)
    counts = weights != 0
    # Before the softmax: a NaN that is masked after it still poisons the gradient.
    logits = jnp.where(counts[..., None], logits.astype(jnp.float32), jnp.float32(0))
    chosen = _chosen(logits, targets, counts)[..., 0]
    return jnp.sum(weights * (jax.nn.logsumexp(logits, axis=-1) - chosen)), weights.sum()


def accuracy(
    logits: Float[Array, "*B V"], targets: Int[Array, "*B"], weights: Float[Array, "*B"] | Int[Array, "*B"]
) -> Sums:
    """The weight of the positions whose largest logit is the target's, and the weight of all.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.losses import accuracy
    >>> right, weight = accuracy(jnp.eye(3), jnp.array([0, 1, 0]), jnp.array([1.0, 1.0, 2.0]))
    >>> float(right), float(weight)
    (2.0, 4.0)
    """
    weights = weights.astype(jnp.float32)
    chosen = _chosen(logits, targets, weights != 0)
    # An argmax, which XLA does on the CPU one by one, took a quarter of the time of such a head in training.
    place, target = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1), targets[..., None]
    behind = (logits < chosen) | ((logits == chosen) & (place > target))  # as argmax, which takes the first of equals
    behind |= place == target  # however a compiler may round the same logit in two places
    hit = jnp.all(behind, axis=-1)
    return jnp.sum(jnp.where(hit, weights, jnp.zeros_like(weights))), weights.sum()


def _chosen(logits: Float[Array, "*B V"], targets: Int[Array, "*B"], counts: Bool[Array, "*B"]) -> Float[Array, "*B 1"]:
    """The targets' logits; NaN for a target outside the vocabulary."""
    places = inside(targets, counts, logits.shape[-1])
    return jnp.take_along_axis(logits, places[..., None], axis=-1, mode="fill")


def inside(targets: Int[Array, "*B"], counts: Bool[Array, "*B"], size: int) -> Int[Array, "*B"]:
    """Targets to index with: 0 where nothing counts, `size` (which reads as NaN) for any that is outside.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.losses.cross_entropy import inside
    >>> inside(jnp.array([2, -100, -1, 9]), jnp.array([True, False, True, True]), 3).tolist()
    [2, 0, 3, 3]
    """
    # A negative index would count from the end.
    kept = jnp.where((targets >= 0) & (targets < size), targets, jnp.full_like(targets, size))
    return jnp.where(counts, kept, jnp.zeros_like(targets))
