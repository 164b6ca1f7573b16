"""Matrix products inside the loops of recurrent networks, as XLA computes them fast."""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Float32


def step_product(a: Float[Array, "B I"], b: Float[Array, "I O"]) -> Float32[Array, "B O"]:
    """Return a · b, computed in the type of `b` and summed in float32."""
    a, (inputs, _) = a.astype(b.dtype), b.shape
    if a.shape[0] == 1 and inputs % 2 == 0:
        # As a sum of two products. On a CPU, XLA 0.12 compiles a loop of products with one row into one function for
        # one core; the sum prevents this, and both cores read the kernel.
        halves = jnp.einsum("ki,kio->ko", a.reshape(2, inputs // 2), b.reshape(2, inputs // 2, -1),
                            preferred_element_type=jnp.float32)  # fmt: skip
        return halves.sum(0, keepdims=True)
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def step_product_transposed(a: Float[Array, "B O"], b: Float[Array, "I O"]) -> Float32[Array, "B I"]:
    """Return a · bᵀ, computed in the type of `b` and summed in float32."""
    a = a.astype(b.dtype)
    if len(a) == 1:  # for one row, XLA would transpose the kernel again in every step
        return lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
    return jnp.dot(a, b.T, preferred_element_type=jnp.float32)


def sum_products(a: Float[Array, "T B I"], b: Float[Array, "T B O"], weight: Float[Array, "I O"]) -> Array:
    """Return the sum over steps and rows of aᵀ · b, the gradient of `weight` and of its type, as one product."""
    a, b = (x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).astype(weight.dtype) for x in (a, b))
    return jnp.dot(a.T, b, preferred_element_type=jnp.float32).astype(weight.dtype)
