"""Averaging of checkpoints."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.optim.paths import PyTree, path_name


def average(trees: Iterable[PyTree]) -> PyTree:
    """Return the mean of parameter trees, summed in float64 and cast to the types of the first.

    >>> import numpy as np
    >>> from bert_elmo_jax.optim import average
    >>> average({"bias": np.full(2, x, np.float32)} for x in (1, 2, 6))
    {'bias': array([3., 3.], dtype=float32)}
    """
    count = 0
    for count, tree in enumerate(trees, start=1):
        if count == 1:
            dtypes = jax.tree.map(lambda x: np.asarray(x).dtype, tree)
            sums = jax.tree.map(lambda x: np.array(x, np.float64), tree)
        else:
            check_alike(sums, tree, count - 1)
            sums = jax.tree.map(lambda total, x: total + np.asarray(x, np.float64), sums, tree)
    if not count:
        raise ValueError("no tree was given; expected at least one")
    return jax.tree.map(lambda total, dtype: np.asarray(total / count, dtype), sums, dtypes)


def check_alike(first: PyTree, other: PyTree, number: int) -> None:
    """Raise if the paths or shapes of two trees differ, and name the first difference."""
    shapes: list[dict[str, Any]] = [
        {path_name(path): np.shape(x) for path, x in jax.tree_util.tree_leaves_with_path(tree)}
        for tree in (first, other)
    ]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        a, b = (tree.get(name, "not there") for tree in shapes)
        if a != b:
            raise ValueError(
                f"trees 0 and {number} differ in {name}: {a} and {b}; only checkpoints of one model can be averaged"
            )
