"""ELMo's weighted sum of layers: Peters et al. 2018, https://arxiv.org/abs/1802.05365, equation 1."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bert_elmo_jax.nn.any_array import AnyArray


def scalar_mix(
    layers: Float[AnyArray, "L B T D"], weights: Float[AnyArray, " L"], gamma: Float[AnyArray, ""] | float = 1.0
) -> Float[Array, "B T D"]:
    """Return γ · Σⱼ softmax(weights)ⱼ · layerⱼ.

    >>> layers = jnp.array([0.0, 1.0, 5.0]).reshape(3, 1, 1, 1)
    >>> scalar_mix(layers, weights=jnp.zeros(3), gamma=jnp.array(2.0)).item()
    4.0
    """
    shares = gamma * jax.nn.softmax(jnp.asarray(weights))
    # As a product of matrices it would take five times as long on a CPU, where XLA writes the layers once more for it.
    mixed = jnp.zeros((), jnp.float32)
    for share, layer in zip(shares, jnp.asarray(layers), strict=True):
        mixed = mixed + share * layer.astype(jnp.float32)
    return mixed.astype(layers.dtype)


def normalise_layer(
    layer: Float[AnyArray, "B T D"], mask: Bool[AnyArray, "B T"], eps: float = 1e-13
) -> Float[Array, "B T D"]:
    """Normalise a layer by one mean and deviation over all real positions of the batch; zeros if there are none.

    >>> layer = jnp.array([[[1.0], [3.0], [700.0]]])
    >>> normalise_layer(layer, jnp.array([[True, True, False]]))[0, :2, 0].tolist()
    [-1.0, 1.0]
    """
    real = jnp.broadcast_to(jnp.asarray(mask)[:, :, None], layer.shape)
    wide = jnp.where(real, jnp.asarray(layer, jnp.float32), 0.0)
    count = jnp.maximum(real.sum(), 1).astype(jnp.float32)
    mean = wide.sum() / count
    centred = jnp.where(real, wide - mean, 0.0)
    variance = jnp.square(centred).sum() / count
    return (centred * jax.lax.rsqrt(variance + eps)).astype(layer.dtype)
