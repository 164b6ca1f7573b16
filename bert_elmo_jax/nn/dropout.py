"""Dropout with cheap random numbers.

A threefry number per element would take five to ten per cent of a BERT training step on a CPU. Here the generator
draws 64 bits per *row* (all axes but the last), and an integer hash, fused into the surrounding loop, spreads them
along the row. A test checks that elements of a row are uncorrelated.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt32


def dropout(x: Float[Array, "*B D"], rate: float, key: PRNGKeyArray | None) -> Float[Array, "*B D"]:
    """Zero each element with probability `rate` and scale the rest to keep the mean; without a key, return `x`.

    >>> dropped = dropout(jnp.ones(1000), 0.5, jax.random.key(0))
    >>> sorted(set(dropped.tolist())), dropout(jnp.ones(2), 0.5, None).tolist()
    ([0.0, 2.0], [1.0, 1.0])
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout rate {rate}: expected at least 0 and below 1")
    if key is None or rate == 0:
        return x
    # Scaled in float32: rounded to 16 bits, 1 / (1 - rate) would shift every mean by a thousandth.
    scaled = (x.astype(jnp.float32) / (1 - rate)).astype(x.dtype)
    return jnp.where(keep(key, x.shape, rate), scaled, jnp.zeros_like(x))


def variational_dropout(x: Float[Array, "B T D"], rate: float, key: PRNGKeyArray | None) -> Float[Array, "B T D"]:
    """Apply dropout with one mask for all positions of a row: Gal and Ghahramani 2016, arXiv:1512.05287.

    >>> dropped = variational_dropout(jnp.ones((1, 3, 100)), 0.5, jax.random.key(0))
    >>> bool((dropped == dropped[:, :1]).all()), sorted(set(dropped[0, 0].tolist()))
    (True, [0.0, 2.0])
    """
    if key is None or rate == 0:
        return x
    mask = dropout(jnp.ones((x.shape[0], x.shape[2]), x.dtype), rate, key)
    return x * mask[:, None, :]


def dropout_options(key: PRNGKeyArray | None) -> dict[str, Any]:
    """Return the arguments of a module's `apply` that turn dropout on, or off without a key.

    >>> dropout_options(None)
    {'deterministic': True, 'rngs': {}}
    """
    return {"deterministic": key is None, "rngs": {} if key is None else {"dropout": key}}


def keep(key: PRNGKeyArray, shape: tuple[int, ...], rate: float) -> Bool[Array, "*B D"]:
    """Return a mask of the kept elements, each True with probability 1 - rate.

    >>> 850 < int(keep(jax.random.key(0), (10, 100), 0.1).sum()) < 950
    True
    """
    first, second = jax.random.bits(key, (2, *shape[:-1], 1), jnp.uint32)
    place = lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
    hashed = scramble(scramble(place ^ jnp.broadcast_to(first, shape)) + jnp.broadcast_to(second, shape))
    return hashed >= jnp.uint32(min(round(rate * 2**32), 2**32 - 1))


def scramble(x: UInt32[Array, "*B"]) -> UInt32[Array, "*B"]:
    """Hash 32-bit numbers by the finaliser of MurmurHash3: a bijection that mixes all bits.

    >>> scramble(jnp.array([0, 1], jnp.uint32)).tolist()
    [0, 1364076727]
    """
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
