"""Disentangled attention: He et al. 2021, https://arxiv.org/abs/2006.03654, as the released models compute it.

A score has up to three terms: content to content; content to position, the query with a vector of the distance; and
position to content, the key with another vector of the same distance. Distances are query minus key. Long ones share
buckets.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.matrix_product import float32_scores

BLOCK = 64  # the fewest rows of scores that are computed together


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


def shear(scores: Float[Array, "*B N W"]) -> Float[Array, "*B N T"]:
    """Return the entries `n - 1 - i + j` of each row i of N, for j from 0 to T - 1; W is N + T.

    Each row of the result begins one place before the row above it. So the rows, one after the other, are cut into
    rows that are shorter by one: copies of whole blocks, where a gather and the scatter of its gradient would move
    entry by entry.

    >>> shear(jnp.arange(8.0).reshape(2, 4)).tolist()
    [[1.0, 2.0], [4.0, 5.0]]
    """
    *batch, n, width = scores.shape
    axis = len(batch)
    if isinstance(n, int):
        flat = scores.reshape(*batch, n * width)[..., n - 1 : n - 1 + n * (width - 1)]
    else:  # a symbolic size: a row more in front, because JAX cannot tell that the slice above has a size above zero
        flat = lax.slice_in_dim(scores.reshape(*batch, n * width), 0, n * width - 1, axis=axis)
        front = jnp.zeros((*batch, width - n), scores.dtype)
        rows = jnp.concatenate([front, flat], axis=axis).reshape(*batch, n + 1, width - 1)
        flat = lax.slice_in_dim(rows, 1, n + 1, axis=axis)
    return lax.slice_in_dim(flat.reshape(*batch, n, width - 1), 0, width - n, axis=axis + 1)


def block_rows(length: int) -> int:
    """Return how many rows of scores are computed together: the fewest from `BLOCK` on that divide the length.

    All, if the length is a symbolic size of `jax.export`.

    >>> block_rows(512), block_rows(96), block_rows(130), block_rows(7)
    (64, 96, 65, 7)
    """
    if not isinstance(length, int):
        return length
    return next(size for size in range(min(BLOCK, length), length + 1) if length % size == 0)


def by_distance(x: Float[Array, "B T A H"], vectors: Float[Array, "W A H"]) -> Float32[Array, "B A T T"]:
    """Return the product of each row i of `x` with the vector of each place j, which is `vectors[T - i + j]`.

    A block of n rows needs n + T of the 2 · T vectors, so blocks do less than all rows together.
    """
    b, t, heads, size = x.shape
    n = block_rows(t)
    starts = [t + 1 - n - first for first in (range(0, t, n) if isinstance(t, int) else [0])]
    windows = jnp.stack([lax.slice_in_dim(vectors, start, start + n + t) for start in starts])
    blocks = x.reshape(b, t // n, n, heads, size)
    return float32_scores(_sheared_products, blocks, windows).reshape(b, heads, t, t)


def _sheared_products(blocks: AnyArray, windows: AnyArray, preferred_element_type: DTypeLike) -> Array:
    # In this order of axes, XLA writes the products once, in half the time.
    products = jnp.einsum("bmnah,mwah->mabnw", blocks, windows, preferred_element_type=preferred_element_type)
    return shear(products).transpose(2, 1, 0, 3, 4)


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
    if position_keys is not None:
        terms.append(by_distance(query, position_keys))
    if position_queries is not None:  # seen from a key, the distances of queries rise from place to place
        terms.append(by_distance(key, lax.rev(position_queries, (0,))).swapaxes(-1, -2))
    return sum(terms[1:], terms[0])


def distance_vectors(
    table: Float[AnyArray, "N D"], length: int, buckets: int, largest: int, longest: int | None = None
) -> Float[Array, "W D"]:
    """Return the rows of a table for the distances from `length` down to `-length`.

    A symbolic length of `jax.export` needs `longest`, its upper bound.
    """
    bound = length if isinstance(length, int) or longest is None else longest
    rows = jnp.asarray(table_rows(np.arange(bound, -bound - 1, -1), buckets, largest))
    rows = rows if isinstance(length, int) else lax.slice_in_dim(rows, bound - length, bound + length + 1)
    return jnp.take(jnp.asarray(table), rows, axis=0, mode="clip")
