"""Look-up in a table of vectors."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bert_elmo_jax.nn.any_array import AnyArray


def embed(table: Float[AnyArray, "V D"], ids: Int[AnyArray, "*B"]) -> Float[Array, "*B D"]:
    """The rows of `table` named by `ids`; an id outside the table gives NaN, never another row.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import embed
    >>> embed(jnp.eye(2), jnp.array([1, 7])).tolist()
    [[0.0, 1.0], [nan, nan]]
    """
    return jnp.take(table, ids, axis=0, mode="fill", fill_value=jnp.nan)
