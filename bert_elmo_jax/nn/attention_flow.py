"""Attention between two texts and within one text, with a trilinear similarity.

Seo et al. 2017 (BiDAF), https://arxiv.org/abs/1611.01603; Clark and Gardner 2018, https://arxiv.org/abs/1710.10723.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax.linen.initializers import normal
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.pooling import LOW, masked_softmax


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
    """Return [x, c, x ∘ c, c ∘ q] for each word of a context `x` and a question `y`.

    c is the word's attention over the question. q is one vector for the whole context: the mean of its words, weighted
    by the softmax of each word's highest similarity to a word of the question.

    >>> params = init_similarity(jax.random.key(0), 5)
    >>> x, y = jnp.ones((2, 4, 5)), jnp.ones((2, 3, 5))
    >>> attention_flow(x, y, params, jnp.ones((2, 4), bool), jnp.ones((2, 3), bool)).shape
    (2, 4, 20)
    """
    scores = similarity(x, y, params["both"], params["of_x"], params["of_y"])
    there = jnp.broadcast_to(y_there[:, None, :], scores.shape)
    found = masked_softmax(scores, there) @ y
    highest = jnp.where(there, scores, LOW).max(axis=2)
    back = masked_softmax(highest[:, None, :], x_there[:, None, :]) @ x
    return jnp.concatenate([x, found, x * found, back * found], axis=-1)


def self_attention_flow(
    x: Float[Array, "B T D"], params: Mapping[str, AnyArray], there: Bool[Array, "B T"]
) -> Float[Array, "B T 3*D"]:
    """Return [x, c, x ∘ c] for each word of a text, where c is its attention over the other words.

    >>> params = init_similarity(jax.random.key(0), 5, of_x=False)
    >>> self_attention_flow(jnp.ones((2, 4, 5)), params, jnp.ones((2, 4), bool)).shape
    (2, 4, 15)
    """
    # The term of x alone shifts all scores of a word equally, so the softmax would cancel it.
    scores = similarity(x, x, params["both"], None, params["of_y"])
    others = there[:, None, :] & ~jnp.eye(x.shape[1], dtype=bool)[None]
    found = masked_softmax(scores, others) @ x
    return jnp.concatenate([x, found, x * found], axis=-1)


def init_similarity(key: PRNGKeyArray, size: int, of_x: bool = True) -> dict[str, Array]:
    """Initialise the parameters of a similarity.

    >>> sorted(init_similarity(jax.random.key(0), 5, of_x=False))
    ['both', 'of_y']
    """
    names = ("both", "of_y", *(("of_x",) if of_x else ()))
    return {name: normal(size**-0.5)(sub, (size,), jnp.float32) for name, sub in zip(names, jax.random.split(key, 3))}
