"""Embedding look-up."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn.any_array import AnyArray


def embed(table: Float[AnyArray, "V D"], ids: Int[AnyArray, "*B"]) -> Float[Array, "*B D"]:
    """Return the rows of `table` at `ids`; an id outside the table gives NaN.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import embed
    >>> embed(jnp.eye(2), jnp.array([1, 7, -1])).tolist()
    [[0.0, 1.0], [nan, nan], [nan, nan]]
    """
    ids = jnp.asarray(ids)
    if jnp.issubdtype(ids.dtype, jnp.signedinteger):
        ids = ids if ids.dtype.itemsize > 2 else ids.astype(jnp.int32)
        # jnp.take would count negative indices from the end.
        ids = jnp.where(ids < 0, jnp.full_like(ids, jnp.iinfo(ids.dtype).max), ids)
    return jnp.take(table, ids, axis=0, mode="fill", fill_value=jnp.nan)


def look_up(table: Float[AnyArray, "N U D"], words: Int[AnyArray, "T B"]) -> Float[Array, "T B D"]:
    """Return the rows of `words`, for N equal parts of the batch with a table each; NaN outside the table.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import look_up
    >>> tables = jnp.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> look_up(tables, jnp.array([[0, 0], [1, 1]]))[..., 0].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    parts, (t, b) = len(table), words.shape
    if b % parts:
        raise ValueError(f"a batch of {b} rows cannot be split evenly among {parts} tables of distinct words")
    found = jax.vmap(embed, in_axes=(0, 1), out_axes=1)(table, words.reshape(t, parts, b // parts))
    return found.reshape(t, b, table.shape[-1])
