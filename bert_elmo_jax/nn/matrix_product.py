"""The products of dense layers, of attention and of a softmax over words, with own gradients where XLA's are slow."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float, Float32

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.platform_support import has_bfloat16_products, is_intel


def fast_bfloat16() -> bool:
    """Return whether JAX multiplies bfloat16 matrices faster than float32 on this processor.

    From 0.12 on it does, by AMX or AVX-512.
    """
    return has_bfloat16_products() and jax.__version_info__ >= (0, 12)


def multiply(x: Float[Array, "N I"], kernel: Float[AnyArray, "I O"]) -> Float[Array, "N O"]:
    """Return `x @ kernel`, computed in the type of `x`.

    >>> multiply(jnp.ones((4, 3), jnp.bfloat16), jnp.ones((3, 2))).dtype
    dtype(bfloat16)
    """
    if x.dtype == jnp.bfloat16 and fast_bfloat16():
        return multiply_in_tiles(x, jnp.asarray(kernel))
    return x @ kernel.astype(x.dtype)


def cast_kernels(params: Mapping[str, Any], dtype: jnp.dtype) -> dict[str, Any]:
    """Return parameters with every `kernel` in this type, so that no call has to cast it again; the others stay.

    So do kernels in int8.

    >>> params = cast_kernels({"up": {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}}, jnp.dtype("bfloat16"))
    >>> params["up"]["kernel"].dtype, params["up"]["bias"].dtype
    (dtype(bfloat16), dtype('float32'))
    """

    def cast(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return cast_kernels(value, dtype)
        return value if name != "kernel" or value.dtype in (dtype, jnp.int8) else value.astype(dtype)

    return {name: cast(name, value) for name, value in params.items()}


def transposed_is_faster() -> bool:
    """Return whether XLA multiplies few rows by a float32 kernel faster if the kernel lies transposed in memory.

    It takes two thirds of the time on an Intel Xeon (family 6, model 207), and 1.3 times as long on an AMD EPYC (family
    25, model 17).
    """
    return jax.default_backend() == "cpu" and is_intel()


def turn_kernels(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with every `kernel` transposed; turned twice, they are the same.

    See `transposed_is_faster`.

    >>> turn_kernels({"up": {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)}})["up"]["kernel"].shape
    (3, 2)
    """

    def turn(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return turn_kernels(value)
        return value.T if name == "kernel" else value

    return {name: turn(name, value) for name, value in params.items()}


@jax.custom_vjp
def multiply_in_tiles(x: Float[Array, "N I"], kernel: Float[Array, "I O"]) -> Float[Array, "N O"]:
    """Return `x @ kernel` in bfloat16, with gradients that XLA computes by AMX or AVX-512 on a CPU.

    JAX multiplies bfloat16 matrices by such instructions, at two to five times the rate of float32, only where both are
    laid out as in a forward product. Its own gradients are not: for 1024 × 768 × 3072, with AMX, they take four times
    as long as these. The sums are float32, and so is the gradient of a float32 kernel.
    """
    return x @ kernel.astype(x.dtype)


def _forward(x: Array, kernel: Array) -> tuple[Array, Any]:
    narrow = kernel.astype(x.dtype)
    # An empty array passes on the kernel's type.
    return x @ narrow, (x, narrow, jnp.zeros(0, kernel.dtype))


def _backward(residuals: Any, g: Array) -> tuple[Array, Array]:
    x, kernel, of_type = residuals

    def in_tiles(x: Array, kernel: Array, g: Array) -> tuple[Array, Array]:
        to_x = lax.dot_general(g, kernel, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        to_kernel = jnp.matmul(_transpose(x), g, preferred_element_type=jnp.float32)
        return to_x.astype(x.dtype), to_kernel.astype(of_type.dtype)

    def as_usual(x: Array, kernel: Array, g: Array) -> tuple[Array, Array]:
        return g @ kernel.T, (x.T @ g).astype(of_type.dtype)

    return lax.platform_dependent(x, kernel, g, cpu=in_tiles, default=as_usual)


multiply_in_tiles.defvjp(_forward, _backward)


def float32_scores(
    product: Callable[..., Array], x: Float[Array, "..."], y: Float[Array, "..."]
) -> Float32[Array, "..."]:
    """Return `product(x, y, preferred_element_type=float32)`, linear in arrays of one type, and summed in float32.

    >>> x = jnp.ones((2, 4, 8), jnp.bfloat16)
    >>> float32_scores(partial(jnp.einsum, "btd,bsd->bts"), x, x).dtype
    dtype('float32')
    """
    if x.dtype != jnp.float32 and _narrow_is_fast():
        return _narrow_scores(product, x, y)
    return product(x, y, preferred_element_type=jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _narrow_scores(product: Callable[..., Array], x: Array, y: Array) -> Array:
    return product(x, y, preferred_element_type=jnp.float32)


def _scores_forward(product: Callable[..., Array], x: Array, y: Array) -> tuple[Array, Any]:
    return _narrow_scores(product, x, y), (x, y)


def _scores_backward(product: Callable[..., Array], inputs: Any, g: Array) -> Any:
    narrow = inputs[0].dtype
    return jax.vjp(partial(product, preferred_element_type=narrow), *inputs)[1](g.astype(narrow))


_narrow_scores.defvjp(_scores_forward, _scores_backward)


def word_logits(x: Float[Array, "*B D"], words: Float[AnyArray, "V D"]) -> Float32[Array, "*B V"]:
    """Return the products of vectors with all word embeddings, computed in the type of `x` and summed in float32."""
    words = jnp.asarray(words)
    logits = _word_logits(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), words)
    return logits.reshape(*x.shape[:-1], len(words))


@jax.custom_vjp
def _word_logits(x: Array, words: Array) -> Array:
    return lax.dot_general(x, words.astype(x.dtype), (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)


def _logits_forward(x: Array, words: Array) -> tuple[Array, Any]:
    narrow = words.astype(x.dtype)
    return _word_logits(x, narrow), (x, narrow, jnp.zeros(0, words.dtype))


def _logits_backward(residuals: Any, g: Array) -> tuple[Array, Array]:
    x, words, of_type = residuals
    g = g.astype(x.dtype) if _narrow_is_fast() else g
    to_x = lax.dot_general(g, words.astype(g.dtype), (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    to_words = lax.dot_general(g, x.astype(g.dtype), (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    return to_x.astype(x.dtype), to_words.astype(of_type.dtype)


_word_logits.defvjp(_logits_forward, _logits_backward)


def _narrow_is_fast() -> bool:
    """Return whether the gradient of scores in float32 should be rounded to the 16 bits of what was multiplied.

    JAX would multiply it by 16-bit matrices in float32, which takes a GPU five times as long, and a CPU twice. Rounded
    like them, it is as exact as the gradients of all other layers.
    """
    return jax.default_backend() != "cpu" or fast_bfloat16()


def _transpose(x: Float[Array, "N I"]) -> Float[Array, "I N"]:
    """Return `x.T` as an array in memory; without the demand for a layout, XLA would fold it into the product."""
    return with_layout_constraint(x.T, Layout(major_to_minor=(0, 1)))
