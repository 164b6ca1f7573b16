"""Layer normalisation with float32 statistics."""

import flax.linen as nn
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from bert_elmo_jax.nn.any_array import AnyArray


def layer_norm(
    x: Float[Array, "*B D"], scale: Float[AnyArray, " D"], bias: Float[AnyArray, " D"], eps: float = 1e-12
) -> Float[Array, "*B D"]:
    """Normalise the last axis with a float32 mean and variance; the result has the type of `x`.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import layer_norm
    >>> layer_norm(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2)).tolist()
    [[-1.0, 1.0]]
    """
    wide = x.astype(jnp.float32)
    # In two passes, because E[x²] - E[x]² cancels where the mean is far from zero.
    centred = wide - wide.mean(-1, keepdims=True)
    inverse = lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + eps)
    normal = centred * inverse * jnp.broadcast_to(scale, x.shape) + jnp.broadcast_to(bias, x.shape)
    return normal.astype(x.dtype)


class LayerNorm(nn.Module):
    """`layer_norm` with parameters `scale [D]` and `bias [D]`.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.nn import LayerNorm
    >>> sorted(LayerNorm().init(jax.random.key(0), jnp.ones((2, 3)))["params"])
    ['bias', 'scale']
    """

    eps: float = 1e-12

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Normalise the last axis."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        return layer_norm(x, scale, bias, self.eps)
