"""Parameter trees: paths such as `encoder/layer_0/norm/scale`, patterns that match them, and averages."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

PyTree = Any


def path_name(path: tuple[Any, ...]) -> str:
    """Return the path of a leaf, with slashes."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def matches(tree: PyTree, patterns: Sequence[str], *, each_must: bool = False) -> PyTree:
    """Return a tree of booleans: True where a pattern (a regular expression) matches the *whole* path of a leaf.

    With `each_must`, raise if a pattern matches no path.

    >>> matches({"layer_1": {"bias": 0}, "layer_10": {"bias": 0}}, ["layer_1/.*"])
    {'layer_1': {'bias': True}, 'layer_10': {'bias': False}}
    """
    if each_must:
        names = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
        for pattern in patterns:
            if not any(re.fullmatch(pattern, name) for name in names):
                near = difflib.get_close_matches(pattern, names, n=3, cutoff=0) or ["none at all"]
                raise ValueError(
                    f"the pattern {pattern!r} matches no parameter; expected a regular expression for a whole path. "
                    f"Similar paths: {', '.join(near)}"
                )
    return jax.tree_util.tree_map_with_path(
        lambda path, _: any(re.fullmatch(pattern, path_name(path)) for pattern in patterns), tree
    )


def average(trees: Iterable[PyTree]) -> PyTree:
    """Return the mean of parameter trees, summed in float64 and cast to the types of the first.

    >>> average({"bias": np.full(2, x, np.float32)} for x in (1, 2, 6))
    {'bias': array([3., 3.], dtype=float32)}
    """
    count = 0
    for count, tree in enumerate(trees, start=1):
        if count == 1:
            dtypes = jax.tree.map(lambda x: np.asarray(x).dtype, tree)
            sums = jax.tree.map(lambda x: np.array(x, np.float64), tree)
        else:
            sums = jax.tree.map(lambda total, x: total + np.asarray(x, np.float64), sums, tree)
    return jax.tree.map(lambda total, dtype: np.asarray(total / count, dtype), sums, dtypes)
