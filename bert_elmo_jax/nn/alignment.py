"""Soft alignment of two texts."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bert_elmo_jax.nn.pooling import masked_softmax


def align(x: Float[Array, "B S D"], other: Float[Array, "B T D"], real: Bool[Array, "B T"]) -> Float[Array, "B S D"]:
    """Return the attention of each position of `x` over the real positions of `other`, with dot-product scores.

    The result is zero if the other text has no real position.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import align
    >>> x, other = jnp.array([[[9.0, 0.0]]]), jnp.array([[[9.0, 1.0], [-9.0, 5.0], [99.0, 0.0]]])
    >>> align(x, other, jnp.array([[True, True, False]])).tolist()
    [[[9.0, 1.0]]]
    """
    shares = masked_softmax(jnp.einsum("bsd,btd->bst", x, other), real[:, None, :])
    return jnp.einsum("bst,btd->bsd", shares, other)
