"""Linear-chain conditional random fields: Lafferty et al. 2001; over tags as in Lample et al. 2016.

A path of tags y through T words scores Σ scoresₜ[yₜ] + Σ transitions[yₜ₋₁, yₜ]. `transitions` of K tags are
[K + 1, K + 1], with row K for the begin and column K for the end of a sentence. Rows have `lengths`; padding is
ignored, even if it is NaN. A row without words has one path, which scores 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int32

from bert_elmo_jax.losses.cross_entropy import Sums

AnyArray = Array | np.ndarray
Scores = Float[AnyArray, "B T K"]
Transitions = Float[AnyArray, "K+1 K+1"]
Lengths = Int[AnyArray, " B"]
Tags = Int[AnyArray, "B T"]
FORBIDDEN = -1e9  # finite, so that gradients are finite; its exponential is 0


def log_partition(scores: Scores, transitions: Transitions, lengths: Lengths) -> Float32[Array, " B"]:
    """Return log Σ exp(score) over all paths of each row.

    >>> [round(float(z), 4) for z in log_partition(jnp.zeros((2, 3, 2)), jnp.zeros((3, 3)), jnp.array([3, 1]))]
    [2.0794, 0.6931]
    """
    scores, transitions = _real(scores, lengths), jnp.asarray(transitions, jnp.float32)
    k = scores.shape[-1]
    if not scores.shape[1]:
        return jnp.zeros(len(scores))
    between = transitions[None, :k, :k]

    def step(ways: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        t, emitted = at
        longer = jax.nn.logsumexp(ways[:, :, None] + between, axis=1) + emitted
        return jnp.where((t < lengths)[:, None], longer, ways), None

    ways, _ = jax.lax.scan(step, transitions[None, k, :k] + scores[:, 0], _after_the_first(scores))
    return jnp.where(jnp.asarray(lengths) > 0, jax.nn.logsumexp(ways + transitions[None, :k, k], axis=1), 0.0)


def path_score(scores: Scores, transitions: Transitions, lengths: Lengths, tags: Tags) -> Float32[Array, " B"]:
    """Return the score of a path of each row; NaN if a tag is out of range."""
    scores, transitions = _real(scores, lengths), jnp.asarray(transitions, jnp.float32)
    (rows, size, k), lengths = scores.shape, jnp.asarray(lengths)
    if not size:
        return jnp.zeros(rows)
    real = jnp.arange(size)[None, :] < lengths[:, None]
    tags = jnp.where(real, jnp.asarray(tags), 0)
    wrong = ((tags < 0) | (tags >= k)).any(axis=1)
    tags = jnp.clip(tags, 0, k - 1)
    emitted = jnp.take_along_axis(scores, tags[:, :, None], axis=2)[:, :, 0]
    before = jnp.concatenate([jnp.full((rows, 1), k, tags.dtype), tags[:, :-1]], axis=1)
    last = jnp.take_along_axis(tags, jnp.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
    total = jnp.where(real, emitted + transitions[before, tags], 0.0).sum(axis=1)
    total = total + jnp.where(lengths > 0, transitions[last, jnp.full_like(last, k)], 0.0)
    return jnp.where(wrong, jnp.nan, total)


def log_likelihood(scores: Scores, transitions: Transitions, lengths: Lengths, tags: Tags) -> Float32[Array, " B"]:
    """Return the log-probability of a path of each row."""
    return path_score(scores, transitions, lengths, tags) - log_partition(scores, transitions, lengths)


def crf_loss(scores: Scores, transitions: Transitions, lengths: Lengths, tags: Tags) -> Sums:
    """Return Σ −log likelihood, and the number of rows that have words.

    >>> rows = jnp.zeros((2, 3, 2)), jnp.zeros((3, 3)), jnp.array([3, 0]), jnp.zeros((2, 3), jnp.int32)
    >>> [round(float(part), 4) for part in crf_loss(*rows)]
    [2.0794, 1.0]
    """
    weight = (jnp.asarray(lengths) > 0).astype(jnp.float32).sum()
    return -log_likelihood(scores, transitions, lengths, tags).sum(), weight


def marginals(scores: Scores, transitions: Transitions, lengths: Lengths) -> Float32[Array, "B T K"]:
    """Return the marginal probability of each tag at each word; zeros at padding.

    >>> marginals(jnp.zeros((1, 2, 2)), jnp.zeros((3, 3)), jnp.array([1])).tolist()
    [[[0.5, 0.5], [0.0, 0.0]]]
    """
    # The gradient of the log-partition is the expected count of each tag.
    scores = jnp.asarray(scores, jnp.float32)
    return jax.grad(lambda scores: log_partition(scores, transitions, lengths).sum())(scores)


def forbid(transitions: Float[AnyArray, "N N"], legal: Bool[AnyArray, "N N"]) -> Float32[Array, "N N"]:
    """Return transitions that give illegal paths the probability 0."""
    return jnp.where(jnp.asarray(legal), jnp.asarray(transitions, jnp.float32), FORBIDDEN)


def viterbi(
    scores: Scores, transitions: Transitions, lengths: Lengths, legal: Bool[AnyArray, "K+1 K+1"] | None = None
) -> tuple[Int32[Array, "B T"], Float32[Array, " B"]]:
    """Return the best legal path of each row (0 at padding) and its score, -inf if there is none.

    >>> scores, legal = jnp.array([[[9.0, 0.0], [0.0, 1.0]]]), jnp.ones((3, 3), bool).at[0, 1].set(False)
    >>> viterbi(scores, jnp.zeros((3, 3)), jnp.array([2]))[0].tolist()
    [[0, 1]]
    >>> viterbi(scores, jnp.zeros((3, 3)), jnp.array([2]), legal)[0].tolist()
    [[0, 0]]
    """
    scores, transitions = _real(scores, lengths), jnp.asarray(transitions, jnp.float32)
    (rows, size, k), lengths = scores.shape, jnp.asarray(lengths)
    if legal is not None:  # -inf, which no score can outweigh; no gradient is needed here
        transitions = jnp.where(jnp.asarray(legal), transitions, -jnp.inf)
    if not size:
        return jnp.zeros((rows, 0), jnp.int32), jnp.zeros(rows)
    between, same = transitions[None, :k, :k], jnp.arange(k)[None, :]

    def step(best: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        t, emitted = at
        ways = best[:, :, None] + between
        live = (t < lengths)[:, None]
        return jnp.where(live, ways.max(axis=1) + emitted, best), jnp.where(live, ways.argmax(axis=1), same)

    best, before = jax.lax.scan(step, transitions[None, k, :k] + scores[:, 0], _after_the_first(scores))
    ends = best + transitions[None, :k, k]
    last = ends.argmax(axis=1)

    def back(tag: Array, pointers: Array) -> tuple[Array, Array]:
        earlier = jnp.take_along_axis(pointers, tag[:, None], axis=1)[:, 0]
        return earlier, tag

    first, following = jax.lax.scan(back, last, before, reverse=True)
    path = jnp.concatenate([first[None], following]).swapaxes(0, 1).astype(jnp.int32)
    real = jnp.arange(size)[None, :] < lengths[:, None]
    return jnp.where(real, path, 0), jnp.where(lengths > 0, ends.max(axis=1), 0.0)


def _real(scores: Scores, lengths: Lengths) -> Float32[Array, "B T K"]:
    real = jnp.arange(scores.shape[1])[None, :] < jnp.asarray(lengths)[:, None]
    return jnp.where(real[:, :, None], jnp.asarray(scores, jnp.float32), 0.0)


def _after_the_first(scores: Float32[Array, "B T K"]) -> tuple[Array, Array]:
    return jnp.arange(1, scores.shape[1]), scores[:, 1:].swapaxes(0, 1)
