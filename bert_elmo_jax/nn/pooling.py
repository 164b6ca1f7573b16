"""Pooling, softmax and attention over the real positions of each row.

Padding must be finite and then affects neither values nor gradients. A row without a real position gives zeros.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax.linen.initializers import normal
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray

LOW = -1e30  # below every score, but finite, because -inf - -inf is NaN


def masked_softmax(scores: Float[Array, "*B T"], real: Bool[Array, "*C T"]) -> Float[Array, "*B T"]:
    """Return the softmax over the real positions of the last axis."""
    real = jnp.broadcast_to(real, scores.shape)
    scores = jnp.where(real, scores, LOW)
    odds = jnp.where(real, jnp.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    total = odds.sum(axis=-1, keepdims=True)
    return odds / jnp.where(total > 0, total, 1.0)


def mean_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the mean over each row's real positions.

    >>> mean_pool(jnp.array([[[1.0], [3.0], [9.0]]]), jnp.array([[True, True, False]])).tolist()
    [[2.0]]
    """
    count = jnp.maximum(real.sum(axis=1), 1).astype(x.dtype)
    return jnp.where(real[..., None], x, 0.0).sum(axis=1) / count[:, None]


def max_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the elementwise maximum over each row's real positions.

    >>> max_pool(jnp.array([[[1.0], [3.0], [9.0]]]), jnp.array([[True, True, False]])).tolist()
    [[3.0]]
    """
    largest = jnp.where(real[..., None], x, LOW).max(axis=1)
    return jnp.where(real.any(axis=1)[:, None], largest, 0.0)


def min_pool(x: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B D"]:
    """Return the elementwise minimum over each row's real positions.

    >>> min_pool(jnp.array([[[1.0], [3.0], [-9.0]]]), jnp.array([[True, True, False]])).tolist()
    [[1.0]]
    """
    return -max_pool(-x, real)


def align(x: Float[Array, "B S D"], other: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B S D"]:
    """Attend from each position of `x` to the real positions of `other` by dot products; zeros if there are none.

    >>> x, other = jnp.array([[[9.0, 0.0]]]), jnp.array([[[9.0, 1.0], [-9.0, 5.0], [99.0, 0.0]]])
    >>> align(x, other, jnp.array([[True, True, False]])).tolist()
    [[[9.0, 1.0]]]
    """
    shares = masked_softmax(jnp.einsum("bsd,btd->bst", x, other), real[:, None, :])
    return jnp.einsum("bst,btd->bsd", shares, other)


def similarity(
    x: Float[Array, "B T D"],
    y: Float[Array, "B Q D"],
    both: Float[AnyArray, " D"],
    of_x: Float[AnyArray, " D"] | None,
    of_y: Float[AnyArray, " D"],
) -> Float[Array, "B T Q"]:
    """Return `of_x` · x + `of_y` · y + `both` · (x ∘ y) for all pairs of words, without an array of [T, Q, D]."""
    scores = jnp.einsum("btd,bqd->btq", x * jnp.asarray(both)[None, None, :], y)
    scores = scores + (y @ jnp.asarray(of_y))[:, None, :]
    return scores if of_x is None else scores + (x @ jnp.asarray(of_x))[:, :, None]


def attention_flow(
    x: Float[Array, "B T D"],
    y: Float[Array, "B Q D"],
    params: Mapping[str, AnyArray],
    x_there: Bool[Array, "B T"],
    y_there: Bool[Array, "B Q"],
) -> Float[Array, "B T 4*D"]:
    """Return [x, c, x ∘ c, c ∘ q] for each word of a context `x` and a question `y`: BiDAF, arXiv:1611.01603.

    c is the word's attention over the question. q is one vector for the whole context: the mean of its words, weighted
    by the softmax of each word's highest similarity to a word of the question.

    >>> params = init_similarity(jax.random.key(0), 5)
    >>> x, y = jnp.ones((2, 4, 5)), jnp.ones((2, 3, 5))
    >>> attention_flow(x, y, params, jnp.ones((2, 4), bool), jnp.ones((2, 3), bool)).shape
    (2, 4, 20)
    """
    scores = similarity(x, y, params["both"], params["of_x"], params["of_y"])
    y_mask = jnp.broadcast_to(y_there[:, None, :], scores.shape)
    attended = masked_softmax(scores, y_mask) @ y
    highest = jnp.where(y_mask, scores, LOW).max(axis=2)
    back = masked_softmax(highest[:, None, :], x_there[:, None, :]) @ x
    return jnp.concatenate([x, attended, x * attended, back * attended], axis=-1)


def self_attention_flow(
    x: Float[Array, "B T D"], params: Mapping[str, AnyArray], mask: Bool[Array, "B T"]
) -> Float[Array, "B T 3*D"]:
    """Return [x, c, x ∘ c] for each word of a text, where c attends to the other words: arXiv:1710.10723.

    >>> params = init_similarity(jax.random.key(0), 5, of_x=False)
    >>> self_attention_flow(jnp.ones((2, 4, 5)), params, jnp.ones((2, 4), bool)).shape
    (2, 4, 15)
    """
    # The term of x alone shifts all scores of a word equally, so the softmax would cancel it.
    scores = similarity(x, x, params["both"], None, params["of_y"])
    other_words = mask[:, None, :] & ~jnp.eye(x.shape[1], dtype=bool)[None]
    attended = masked_softmax(scores, other_words) @ x
    return jnp.concatenate([x, attended, x * attended], axis=-1)


def init_similarity(key: PRNGKeyArray, size: int, of_x: bool = True) -> dict[str, Array]:
    """Initialise the parameters of a similarity.

    >>> sorted(init_similarity(jax.random.key(0), 5, of_x=False))
    ['both', 'of_y']
    """
    names = ("both", "of_y", *(("of_x",) if of_x else ()))
    return {name: normal(size**-0.5)(sub, (size,), jnp.float32) for name, sub in zip(names, jax.random.split(key, 3))}
