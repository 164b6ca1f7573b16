"""The norm of all gradients together."""

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float32

from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.optim.paths import PyTree


def global_norm(tree: PyTree) -> Float32[Array, ""]:
    """Return the root of the sum of all squares.

    >>> float(global_norm({"a": jnp.array([3.0]), "b": jnp.array([[4.0]])}))
    5.0
    """
    if not uses("norms"):
        return optax.tree.norm(tree)
    # A sum for each row of a matrix, then one over everything: two kernels less for each array than a sum for each.
    squares = [jnp.square(jnp.atleast_1d(leaf).astype(jnp.float32)) for leaf in jax.tree.leaves(tree)]
    sums = [square if square.ndim == 1 else square.sum(-1).ravel() for square in squares]
    # The barrier keeps XLA from summing the parts of the concatenation one by one.
    return jnp.sqrt(lax.optimization_barrier(jnp.concatenate(sums)).sum())
