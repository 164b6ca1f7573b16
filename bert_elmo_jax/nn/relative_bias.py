"""Relative positions as a bias of attention: Raffel et al. 2020, https://arxiv.org/abs/1910.10683."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn.any_array import AnyArray

BUCKETS, FARTHEST = 32, 128


def relative_buckets(distances: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Return the bucket of each distance, key minus query: 16 for each direction.

    Distances 0 to 7 have a bucket each, longer ones share buckets that grow with the logarithm, up to 128.

    >>> relative_buckets(np.array([-200, -3, 0, 7, 8, 12, 127])).tolist()
    [15, 3, 0, 23, 24, 25, 31]
    """
    half, size = BUCKETS // 2, np.abs(distances)
    near = half // 2
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(near)) / np.float32(np.log(FARTHEST / near))
    far = np.minimum(near + (ratio * np.float32(half - near)).astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(size < near, size, far)


def relative_bias(
    table: Float[AnyArray, "N A"], length: int, longest: int | None = None
) -> Float[Array, "1 A {length} {length}"]:
    """Return the bias of each query (third axis) for each key (last axis) from a table of buckets.

    It depends on distances alone, so it is the same for all rows, and for the sequences of packed ones. A symbolic
    length of `jax.export` needs `longest`, its upper bound.

    >>> table = jnp.arange(32.0)[:, None]
    >>> relative_bias(table, 3)[0, 0].tolist()
    [[0.0, 17.0, 18.0], [1.0, 0.0, 17.0], [2.0, 1.0, 0.0]]
    """
    # By distance: 0, 1, …, length - 1, one that no pair has, then -(length - 1), …, -1. As a product, because a sparse
    # gradient of the table would be slow.
    bound = length if isinstance(length, int) or longest is None else longest
    distances = np.concatenate([np.arange(bound), [0], np.arange(1 - bound, 0)])
    one_hot = jax.nn.one_hot(relative_buckets(distances), len(table), dtype=table.dtype)
    by_distance = jnp.matmul(one_hot, table, precision="highest")
    if not isinstance(length, int):  # the same distances, with another that no pair has
        ends = lax.slice_in_dim(by_distance, 0, length), lax.slice_in_dim(by_distance, 2 * bound - length, 2 * bound)
        by_distance = jnp.concatenate(ends)
    # Each row of a matrix with the values of all distances is the row before, turned by one: so written one after the
    # other and cut into rows that are shorter by one, row i begins with the distances -i, 1 - i, …
    heads = by_distance.shape[1]
    turned = jnp.broadcast_to(by_distance.T[:, None, :], (heads, length, 2 * length)).reshape(heads, 2 * length, length)
    turned = lax.slice_in_dim(turned, 0, 2 * length - 1, axis=1).reshape(1, heads, length, 2 * length - 1)
    return lax.slice_in_dim(turned, 0, length, axis=3)
