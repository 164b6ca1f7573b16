"""Paths of parameters, such as `encoder/layer_0/norm/scale`, and patterns that match them."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import jax

PyTree = Any


def path_name(path: tuple[Any, ...]) -> str:
    """Return the path of a leaf, with slashes."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def matches(tree: PyTree, patterns: Sequence[str], *, each_must: bool = False) -> PyTree:
    """Return a tree of booleans: True where a pattern (a regular expression) matches the *whole* path of a leaf.

    With `each_must`, raise if a pattern matches no path.

    >>> from bert_elmo_jax.optim import matches
    >>> matches({"layer_1": {"bias": 0}, "layer_10": {"bias": 0}}, ["layer_1/.*"])
    {'layer_1': {'bias': True}, 'layer_10': {'bias': False}}
    """
    if isinstance(patterns, str):
        raise ValueError(f"patterns is the string {patterns!r}; give a list of them, [{patterns!r}]")
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
