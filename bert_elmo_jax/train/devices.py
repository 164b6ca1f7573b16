"""The devices of this process: their name, and their peak speed to report utilisation against."""

import timeit

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike


def describe_devices() -> str:
    """Return the number and kind of the devices, such as `8 × cpu`."""
    return f"{jax.device_count()} × {jax.devices()[0].device_kind}"


def matmul_rate(dtype: DTypeLike = jnp.float32, size: int | None = None, repeats: int = 5) -> float:
    """Measure the floating-point operations per second of a large matrix product, an upper bound for any model.

    >>> matmul_rate(size=128) > 1e6
    True
    """
    size = size or (1024 if jax.default_backend() == "cpu" else 8192)
    x = jnp.ones((size, size), dtype)
    product = jax.jit(lambda x: x @ x)
    product(x).block_until_ready()
    return 2 * size**3 / min(timeit.repeat(lambda: product(x).block_until_ready(), number=1, repeat=repeats))
