"""Soft alignment of two texts: for every place of one, what it finds in the other."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bert_elmo_jax.nn.pooling import masked_softmax


def align(x: Float[Array, "B S D"], other: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B S D"]:
    """The mean of the other text's real places, weighed by softmax of their dot products with each place of `x`.

    Zeros come out where the other text has no real place.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import align
    >>> x, other = jnp.array([[[9.0, 0.0]]]), jnp.array([[[9.0, 1.0], [-9.0, 5.0], [99.0, 0.0]]])
    >>> align(x, other, jnp.array([[True, True, False]])).tolist()
    [[[9.0, 1.0]]]
    """
    shares = masked_softmax(jnp.einsum("bsd,btd->bst", x, other), real[:, None, :])
    return jnp.einsum("bst,btd->bsd", shares, other)
