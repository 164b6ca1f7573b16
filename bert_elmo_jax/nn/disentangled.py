"""Disentangled attention: He et al. 2021, https://arxiv.org/abs/2006.03654, as the released models compute it.

A score has up to three terms: content to content; content to position, the query with a vector of the distance; and
position to content, the key with another vector of the same distance. Distances are query minus key. Long ones share
buckets.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.nn.any_array import AnyArray


def distance_buckets(distances: Int[np.ndarray, " N"], buckets: int, largest: int) -> Int[np.ndarray, " N"]:
    """Return the bucket of each distance: itself up to `buckets // 2`, then logarithmic steps up to `largest`.

    >>> distance_buckets(np.array([-30, -4, 3, 5, 11]), 8, 24).tolist()
    [-8, -4, 3, 5, 6]
    """
    middle = buckets // 2
    size = np.maximum(np.abs(distances), middle).astype(np.float32)  # in float32, which decides at the steps
    share = np.log(size / np.float32(middle)) / np.float32(np.log((largest - 1) / middle))
    far = np.ceil(share * np.float32(middle - 1)).astype(np.int64) + middle
    return np.where(np.abs(distances) <= middle, distances, np.sign(distances) * far)


def table_rows(distances: Int[np.ndarray, " N"], buckets: int, largest: int) -> Int[np.ndarray, " N"]:
    """Return the row of each distance in a table of relative positions, which has 2 · (buckets or largest) rows.

    >>> table_rows(np.array([-9, -1, 0, 1, 9]), 0, 4).tolist()
    [0, 3, 4, 5, 7]
    """
    half = buckets or largest
    numbers = distance_buckets(distances, buckets, largest) if buckets else distances
    return np.clip(numbers + half, 0, 2 * half - 1)


def shear(scores: Float[Array, "B A T W"]) -> Float[Array, "B A T T"]:
    """Return the entries `t - 1 - i + j` of each row i, for j from 0 to t - 1; W is 2 · t.

    Each row of the result begins one place before the row above it. So the rows, one after the other, are cut into
    rows that are shorter by one: copies of whole blocks, where a gather and the scatter of its gradient would move
    entry by entry.

    >>> shear(jnp.arange(8.0).reshape(1, 1, 2, 4))[0, 0].tolist()
    [[1.0, 2.0], [4.0, 5.0]]
    """
    b, heads, t, width = scores.shape
    flat = scores.reshape(b, heads, t * width)[..., t - 1 : t - 1 + t * (width - 1)]
    return flat.reshape(b, heads, t, width - 1)[..., :t]


def position_terms(
    query: Float[Array, "B T A H"],
    key: Float[Array, "B T A H"],
    position_keys: Float[Array, "W A H"] | None,
    position_queries: Float[Array, "W A H"] | None,
) -> Float32[Array, "B A T T"]:
    """Return the sum of the terms with positions, without a scale; None leaves a term out.

    `position_keys` and `position_queries` have a vector for each distance, from T down to -T.

    >>> ones, vectors = jnp.ones((1, 2, 1, 1)), jnp.array([2.0, 1.0, 0.0, -1.0, -2.0]).reshape(5, 1, 1)
    >>> position_terms(ones, ones, vectors, None)[0, 0].tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    >>> position_terms(ones, ones, None, vectors)[0, 0].tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    terms = []
    if position_keys is not None:  # row i reads the distances i - j: T - 1, …, -T
        products = jnp.einsum("btah,wah->batw", query, position_keys[1:], preferred_element_type=jnp.float32)
        terms.append(shear(products))
    if position_queries is not None:  # row j reads the distances i - j: 1 - T, …, T
        rising = position_queries[:-1][::-1]
        products = jnp.einsum("bsah,wah->basw", key, rising, preferred_element_type=jnp.float32)
        terms.append(shear(products).swapaxes(-1, -2))
    return sum(terms[1:], terms[0])


def distance_vectors(table: Float[AnyArray, "N D"], length: int, buckets: int, largest: int) -> Float[Array, "W D"]:
    """Return the rows of a table for the distances from `length` down to `-length`."""
    rows = table_rows(np.arange(length, -length - 1, -1), buckets, largest)
    return jnp.take(jnp.asarray(table), jnp.asarray(rows), axis=0, mode="clip")
