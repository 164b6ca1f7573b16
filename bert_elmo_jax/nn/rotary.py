"""Rotary positions: Su et al. 2021, https://arxiv.org/abs/2104.09864.

Queries and keys are rotated by angles that grow with their positions, so their products depend on distances alone.
Element i of a head is paired with element i + H/2, as in GPT-NeoX and Llama.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int

from bert_elmo_jax.nn.any_array import AnyArray

Angles = tuple[Float32[Array, "B T P"], Float32[Array, "B T P"]]  # P pairs: half of a head


def rotary_angles(positions: Int[AnyArray, "B T"], size: int, theta: float = 10_000.0) -> Angles:
    """Return the cosines and sines of all angles: position · theta^(-2i / size), for each pair i of a head's elements.

    >>> cosines, sines = rotary_angles(jnp.array([[0, 1]]), 4, theta=100.0)
    >>> bool(jnp.allclose(jnp.arctan2(sines, cosines), jnp.array([[[0.0, 0.0], [1.0, 0.1]]])))
    True
    """
    if size % 2:
        raise ValueError(f"a head of {size} elements cannot be rotated in pairs: use an even size")
    speeds = 1.0 / theta ** (jnp.arange(0, size, 2, dtype=jnp.float32) / size)
    angles = jnp.asarray(positions).astype(jnp.float32)[:, :, None] * speeds[None, None, :]
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: Float[Array, "B T A H"], angles: Angles) -> Float[Array, "B T A H"]:
    """Rotate the queries or keys of each head, in float32; the result has the type of `x`.

    >>> x = jnp.array([1.0, 0.0]).reshape(1, 1, 1, 2)
    >>> quarter = (jnp.zeros((1, 1, 1)), jnp.ones((1, 1, 1)))
    >>> rotate(x, quarter).ravel().tolist()
    [0.0, 1.0]
    """
    cosines, sines = (part[:, :, None, :] for part in angles)
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
    return turned.astype(x.dtype)
