"""Losses of sentence vectors as sums `(total, weight)`: in-batch negatives, triplets, and scores of similarity.

Reimers and Gurevych 2019, arXiv:1908.10084; Henderson et al. 2017, arXiv:1705.00652; CoSENT: Huang et al. 2024,
doi:10.1109/TASLP.2024.3402087. Examples of weight zero affect neither values nor gradients.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32

from bert_elmo_jax.losses.cross_entropy import Sums, cross_entropy

TINY = 1e-12  # a vector of this length or less counts as zeros
NEVER = -1e9  # the score of a candidate that does not count


def unit(x: Float[Array, "*B D"]) -> Float32[Array, "*B D"]:
    """Return vectors of length 1; zeros stay zeros, with a gradient of zero.

    >>> unit(jnp.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    x = x.astype(jnp.float32)
    square = jnp.sum(jnp.square(x), axis=-1, keepdims=True)
    return jnp.where(square > TINY**2, x * jax.lax.rsqrt(jnp.maximum(square, TINY**2)), 0.0)


def cosines(first: Float[Array, "N D"], second: Float[Array, "N D"]) -> Float32[Array, " N"]:
    """Return the cosine of each pair."""
    return jnp.sum(unit(first) * unit(second), axis=-1)


def in_batch_loss(
    anchors: Float[Array, "N D"],
    positives: Float[Array, "N D"],
    weights: Float[Array, " N"],
    negatives: Float[Array, "N D"] | None = None,
    *,
    scale: float = 20.0,
    both_ways: bool = False,
    excluded: Bool[Array, "N M"] | None = None,
) -> Sums:
    """Return Σ weight · −log p(positive | anchor), where p is the softmax of scale · cosine over all candidates.

    The candidates are all positives, and all `negatives` if there are any; a weight of zero excludes one. `scale` is
    one by the temperature. `both_ways` gives the mean with −log p(anchor | positive), over all anchors. `excluded`
    marks further candidates that do not count for an anchor, such as a second copy of its positive.

    >>> anchors = jnp.eye(2)
    >>> total, weight = in_batch_loss(anchors, anchors, jnp.ones(2), scale=1.0)
    >>> round(float(total / weight), 4)  # -log(e / (e + 1))
    0.3133
    """
    counts = weights > 0
    anchors, positives = (jnp.where(counts[:, None], x, 0.0) for x in (anchors, positives))
    candidates, real = unit(positives), counts
    if negatives is not None:
        candidates = jnp.concatenate([candidates, unit(jnp.where(counts[:, None], negatives, 0.0))])
        real = jnp.concatenate([counts, counts])
    scores = scale * jnp.einsum("nd,md->nm", unit(anchors), candidates, precision="highest")
    targets = jnp.arange(len(anchors))
    hidden = jnp.broadcast_to(~real[None, :], scores.shape)
    if excluded is not None:
        hidden |= excluded
    hidden &= ~jnp.eye(scores.shape[0], scores.shape[1], dtype=bool)  # an anchor's own positive always counts
    scores = jnp.where(hidden, NEVER, scores)
    total, weight = cross_entropy(scores, targets, weights)
    if not both_ways:
        return total, weight
    pairs = scores[:, : len(anchors)]
    pairs = jnp.where(counts[:, None] | jnp.eye(len(anchors), dtype=bool), pairs, NEVER)
    return (total + cross_entropy(pairs.T, targets, weights)[0]) / 2, weight


def triplet_loss(
    anchors: Float[Array, "N D"],
    positives: Float[Array, "N D"],
    negatives: Float[Array, "N D"],
    weights: Float[Array, " N"],
    *,
    margin: float = 1.0,
) -> Sums:
    """Return Σ weight · max(0, |anchor − positive| − |anchor − negative| + margin), and Σ weight.

    >>> one, two = jnp.array([[0.0, 0.0]]), jnp.array([[3.0, 4.0]])
    >>> [float(triplet_loss(one, one, two, jnp.ones(1), margin=margin)[0]) for margin in (1.0, 7.0)]
    [0.0, 2.0]
    """
    weights = weights.astype(jnp.float32)
    near, far = (_distance(anchors, other, weights) for other in (positives, negatives))
    return jnp.sum(weights * jax.nn.relu(near - far + margin)), weights.sum()


def score_loss(
    first: Float[Array, "N D"], second: Float[Array, "N D"], scores: Float[Array, " N"], weights: Float[Array, " N"]
) -> Sums:
    """Return Σ weight · (cosine − score)², and Σ weight.

    >>> pair = jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 2.0]])
    >>> float(score_loss(*pair, jnp.array([0.5]), jnp.ones(1))[0])
    0.25
    """
    weights = weights.astype(jnp.float32)
    counts = (weights > 0)[:, None]
    similarities = cosines(jnp.where(counts, first, 0.0), jnp.where(counts, second, 0.0))
    error = jnp.where(weights > 0, jnp.square(similarities - scores), 0.0)
    return jnp.sum(weights * error), weights.sum()


def cosent_loss(
    first: Float[Array, "N D"],
    second: Float[Array, "N D"],
    scores: Float[Array, " N"],
    weights: Float[Array, " N"],
    *,
    scale: float = 20.0,
) -> Sums:
    """Return w · log(1 + Σ exp(scale · (cosine of i − cosine of j))), and w = Σ weight.

    The sum is over all i and j with score i < score j. Only the order of the scores counts; a weight above zero lets a
    pair take part.

    >>> pair = jnp.eye(2), jnp.array([[1.0, 0.0], [1.0, 0.0]])  # cosines 1 and 0, in the wrong order
    >>> round(float(cosent_loss(*pair, jnp.array([0.0, 1.0]), jnp.ones(2), scale=2.0)[0]), 4)  # 2 · log(1 + e²)
    4.2539
    """
    counts = weights > 0
    cosine = scale * cosines(*(jnp.where(counts[:, None], x, 0.0) for x in (first, second)))
    lower = (scores[:, None] < scores[None, :]) & counts[:, None] & counts[None, :]
    apart = jnp.where(lower, cosine[:, None] - cosine[None, :], NEVER)
    weight = weights.astype(jnp.float32).sum()
    return weight * jax.nn.logsumexp(jnp.append(apart.ravel(), 0.0)), weight


def _distance(
    first: Float[Array, "N D"], second: Float[Array, "N D"], weights: Float[Array, " N"]
) -> Float32[Array, " N"]:
    """Return Euclidean distances, with a gradient of zero at zero."""
    apart = jnp.where((weights > 0)[:, None], first.astype(jnp.float32) - second.astype(jnp.float32), 0.0)
    square = jnp.sum(jnp.square(apart), axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
