"""Row-sparse updates of large tables.

A softmax over 800,000 words has a table of 1.6 GB, but a step with sampled negatives uses only a few thousand rows. A
dense gradient, accumulator and update would still pass over the whole table. Instead, we take the rows in use out of
the table *before* differentiation, so that gradients, accumulation, clipping and the optimiser work on a small dense
array, and put them back afterwards, in place if the buffers are donated:

    touched    maps the batch of a step, with its negatives, to {path of a table: ids}; ids may repeat.
    find_rows  turns these ids into a sorted list of fixed length without repetitions, for each table.
    take_rows  reduces the parameters, or the optimiser's state, to these rows.
    as_rows    gives the loss a `Rows` in place of the table, which finds the rows of ids.
    put_rows   writes the new rows back.

The optimiser must leave rows with a zero gradient unchanged, as Adagrad and SGD do, but not Adam, whose moments decay.
The result then equals the dense update.

`train.make_step(touched=…)` does all this. Other operations on all parameters (undoing a step that is not finite, a
norm of the weights) should use the small trees, or they cost the time that was saved.

If a table also holds the input embeddings, the words of the batch touch it, too. Give the model `values(table)` as its
embedding, `places(table, words)` as its words and `len(values(table))` as its vocabulary size. In `pmap`, gather the
ids of all devices before `find_rows` (`jax.lax.all_gather(ids, axis).ravel()`), so that every device takes the same
rows and gradients can be added. In `jit` with a mesh, nothing changes.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32

from bert_elmo_jax.optim.paths import PyTree, path_name

RowIds = Mapping[str, Int32[Array, "_"]]  # the number of rows differs between tables
LARGEST = np.iinfo(np.int32).max


@no_type_check  # tree operations also put other leaves than arrays of these shapes here
@functools.partial(jax.tree_util.register_dataclass, data_fields=["ids", "values"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Rows:
    """Some rows of a table: their sorted ids, padded with ids beyond any table, and their values."""

    ids: Int32[Array, " K"]
    values: Float[Array, "K *D"]


def values(table: Float[Array, "V *D"] | Rows) -> Float[Array, "R *D"]:
    """Return the values of `Rows`, or the table itself."""
    return table.values if isinstance(table, Rows) else table


def places(table: Float[Array, "V *D"] | Rows, ids: Int[Array, "*B"]) -> Int[Array, "*B"]:
    """Return the positions of these ids in `values(table)`; the position after its end for other ids.

    >>> rows = Rows(jnp.array([2, 40, 999]), jnp.zeros((3, 8)))
    >>> places(rows, jnp.array([[999, 2], [3, 40]])).tolist()
    [[2, 0], [3, 1]]
    """
    if not isinstance(table, Rows):
        return ids
    at = jnp.searchsorted(table.ids, ids.astype(jnp.int32))
    present = jnp.take(table.ids, at, mode="fill", fill_value=-1) == ids
    return jnp.where(present, at, jnp.full_like(at, table.ids.shape[0]))


def find_rows(params: PyTree, touched: Mapping[str, Int[Array, "..."]]) -> RowIds:
    """Return the sorted, distinct ids for each table, with the length of the ids or of the table, if it is shorter.

    The padding consists of ids beyond any table. Invalid ids are dropped; looking them up gives NaN, as in the table.

    >>> find_rows({"lm": {"bias": jnp.zeros(50)}}, {"lm/bias": jnp.array([[7, 3], [7, 50]])})["lm/bias"][:2].tolist()
    [3, 7]
    """
    tables = {path_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
    ids_of = {}
    for name, ids in touched.items():
        if name not in tables or jnp.ndim(tables[name]) == 0:
            raise ValueError(f"rows of {name!r} are touched, but there is no such table; expected {', '.join(tables)}")
        ids_of[name] = unique(ids, len(tables[name]))
    return ids_of


def unique(ids: Int[Array, "..."], size: int) -> Int32[Array, " K"]:
    """Return the distinct ids from 0 to `size` - 1, sorted and padded with the largest integers.

    All are distinct and ascending, as `take_rows` and `put_rows` promise to JAX.
    """
    ids = ids.ravel().astype(jnp.int32)
    count = min(len(ids), size)
    nowhere = jnp.full_like(ids, LARGEST)
    ids = jnp.sort(jnp.where((ids >= 0) & (ids < size), ids, nowhere))
    again = ids == jnp.concatenate([jnp.full(1, -1, jnp.int32), ids[:-1]])
    ids = jnp.sort(jnp.where(again, nowhere, ids))[:count]
    return jnp.where(ids == LARGEST, LARGEST - (count - 1) + jnp.arange(count, dtype=jnp.int32), ids)


def take_rows(tree: PyTree, rows: RowIds) -> PyTree:
    """Return the tree with only these rows of its tables; padding is zero.

    In an optimiser's state, this affects all leaves with the path of a table.

    >>> take_rows({"bias": jnp.zeros(2), "table": jnp.zeros((50, 8))}, {"table": jnp.array([3, 7])})["table"].shape
    (2, 8)
    """

    def take(leaf: Array, ids: Array) -> Array:
        return leaf.at[ids].get(mode="fill", fill_value=0, unique_indices=True, indices_are_sorted=True)

    return map_tables(take, rows, tree)


def put_rows(tree: PyTree, small: PyTree, rows: RowIds) -> PyTree:
    """Return the tree with the rows of `small` written back, and all other leaves taken from `small`.

    >>> put_rows({"bias": jnp.zeros(4)}, {"bias": jnp.array([5.0, 6.0])}, {"bias": jnp.array([1, 2])})["bias"].tolist()
    [0.0, 5.0, 6.0, 0.0]
    """

    def put(leaf: Array, ids: Array, new: Array) -> Array:
        return leaf.at[ids].set(new, mode="drop", unique_indices=True, indices_are_sorted=True)

    return map_tables(put, rows, tree, small)


def as_rows(small: PyTree, rows: RowIds) -> PyTree:
    """Return the parameters for a loss, with `Rows` in place of the tables.

    >>> as_rows({"bias": jnp.ones(2), "kernel": jnp.ones(1)}, {"bias": jnp.array([1, 2])})["bias"].ids.tolist()
    [1, 2]
    """
    return map_tables(lambda leaf, ids: Rows(ids, leaf), rows, small)


def map_tables(function: Any, rows: RowIds, tree: PyTree, *further: PyTree) -> PyTree:
    """Apply `function(leaf, ids, …)` to the leaves of tables, and take the others from the last tree."""

    def one(path: tuple[Any, ...], leaf: Any, *leaves: Any) -> Any:
        # In an optimiser's state, a parameter's path follows the fields and indices of the transformations.
        start = len(path)
        while start and isinstance(path[start - 1], jax.tree_util.DictKey):
            start -= 1
        name = path_name(path[start:])
        return function(leaf, rows[name], *leaves) if name in rows else (leaf, *leaves)[-1]

    return jax.tree_util.tree_map_with_path(one, tree, *further)
