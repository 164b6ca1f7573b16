"""The next piece of a text from its logits: rules that change them, and draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int, Int32, Key

from bert_elmo_jax.nn.any_array import AnyArray

Number = float | np.float32 | Float32[AnyArray, ""]


def penalise_repeats(
    scores: Float32[AnyArray, "B V"], used: Bool[AnyArray, "B V"], penalty: Number
) -> Float32[Array, "B V"]:
    """Make pieces that were used less likely: Keskar et al. 2019, section 4.1.

    A positive score is divided by the penalty, a negative one multiplied.
    """
    scores, used = jnp.asarray(scores), jnp.asarray(used)
    return jnp.where(used, jnp.where(scores > 0, scores / penalty, scores * penalty), scores)


def block(scores: Float32[AnyArray, "B V"], pieces: Bool[AnyArray, " V"]) -> Float32[Array, "B V"]:
    """Give some pieces the score -inf."""
    return jnp.where(jnp.asarray(pieces)[None, :], -jnp.inf, jnp.asarray(scores))


def block_ngrams(
    scores: Float32[AnyArray, "B V"], pieces: Int[AnyArray, "B L"], count: int | Int[AnyArray, ""], size: int
) -> Float32[Array, "B V"]:
    """Give the score -inf to each piece that would repeat a sequence of `size` of the first `count` pieces of its row.

    Negative pieces are padding.

    >>> block_ngrams(jnp.zeros((1, 4)), jnp.array([[1, 2, 3, 1, 2, 0]]), 5, 3).tolist()
    [[0.0, 0.0, 0.0, -inf]]
    """
    scores, pieces, before = jnp.asarray(scores), jnp.asarray(pieces), size - 1
    rows, length = pieces.shape
    if length < size:
        return scores
    places = jnp.arange(before, length)
    repeats = jnp.broadcast_to((places < count)[None, :], (rows, len(places)))
    latest = lax.dynamic_slice_in_dim(pieces, count - before, before, axis=1)
    for n in range(before):
        repeats &= pieces[:, n : length - before + n] == latest[:, n : n + 1]
    # Padding is negative, and a negative index would count from the end.
    blocked = jnp.where(repeats & (pieces[:, before:] >= 0), pieces[:, before:], scores.shape[1])
    return scores.at[jnp.arange(rows)[:, None], blocked].set(-jnp.inf, mode="drop")


def keep_top_p(logits: Float32[AnyArray, "B V"], top_p: Number) -> Float32[Array, "B V"]:
    """Return logits without the tail: the likeliest pieces stay, as few as have the probability `top_p` together.

    Holtzman et al. 2020. Equally likely pieces stay or go together.
    """
    chances = jax.nn.softmax(jnp.asarray(logits))
    # Floats that are not negative have the order of their bits, so the smallest chance that stays is found by halving;
    # sorting a vocabulary takes several times as long on a CPU.
    order = lax.bitcast_convert_type(chances, jnp.int32)

    def halve(_: Any, bounds: tuple[Int32[Array, " B"], Int32[Array, " B"]]) -> tuple[Array, Array]:
        low, high = bounds
        middle = low + (high - low) // 2
        stays = jnp.where(order <= middle[:, None], chances, 0.0).sum(axis=1) > 1 - top_p
        return jnp.where(stays, low, middle + 1), jnp.where(stays, middle, high)

    most = order.max(axis=1)
    _, smallest = lax.fori_loop(0, 31, halve, (jnp.zeros_like(most), most))
    return jnp.where(order >= smallest[:, None], jnp.asarray(logits), -jnp.inf)


def find_likeliest(scores: Float32[AnyArray, "B V"]) -> Int[Array, " B"]:
    """Return the place of the largest score of each row, the first of equal ones.

    On a CPU, XLA takes about twenty times as long for `argmax` over a vocabulary.
    """
    scores, size = jnp.asarray(scores), scores.shape[1]
    best = scores == scores.max(axis=1, keepdims=True)
    places = jnp.where(best, jnp.arange(size)[None, :], size - 1)  # a row of NaN gets the last place, which exists
    return places.min(axis=1)


def draw(
    keys: Key[Array, " B"],
    logits: Float32[AnyArray, "B V"],
    temperature: Number,
    top_k: int | None = None,
    top_p: Number | None = None,
) -> Int[Array, " B"]:
    """Return a piece for each row, drawn with the row's own key from the `top_k` likeliest, then from their `top_p`."""
    scores, pieces = jnp.asarray(logits) / temperature, None
    if top_k is not None and top_k < scores.shape[1]:
        scores, pieces = lax.top_k(scores, top_k)
    if top_p is not None:
        scores = keep_top_p(scores, top_p)
    noise = jax.vmap(lambda key: jax.random.gumbel(key, (scores.shape[1],), jnp.float32))(keys)
    chosen = find_likeliest(scores + noise)
    return chosen if pieces is None else jnp.take_along_axis(pieces, chosen[:, None], axis=1)[:, 0]
