"""Activations by the names that configurations use."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from bert_elmo_jax.did_you_mean import did_you_mean


@jax.custom_jvp
def gelu(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return x · Φ(x) with the exact normal distribution function, as in the first BERT release and PyTorch.

    A custom derivative keeps one array for the backward pass instead of three: the slope, or on a TPU, where computing
    is cheaper than writing, `x`, from which the slope is computed again.

    >>> [round(float(y), 4) for y in gelu(jnp.array([-1.0, 0.0, 1.0]))]
    [-0.1587, 0.0, 0.8413]
    """
    return 0.5 * x * (1 + lax.erf(x * math.sqrt(0.5)))


@gelu.defjvp
def _gelu_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    if jax.default_backend() == "tpu":
        return gelu(x), jax.checkpoint(_gelu_tangent_again, prevent_cse=False)(x, tangent)
    return gelu(x), _gelu_tangent(x, tangent)


def _gelu_tangent_again(x: Array, tangent: Array) -> Array:
    # The barrier keeps `x` as it was rounded; its float32 from before would be twice as large. `prevent_cse` would put
    # one around the tangent too, and write it to memory.
    return _gelu_tangent(lax.optimization_barrier(x), tangent)


def _gelu_tangent(x: Array, tangent: Array) -> Array:
    wide = x if x.dtype.itemsize >= 4 else x.astype(jnp.float32)
    slope = 0.5 * (1 + lax.erf(wide * math.sqrt(0.5))) + wide * jnp.exp(-0.5 * wide * wide) / math.sqrt(2 * math.pi)
    return tangent * slope.astype(x.dtype)


def gelu_new(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the tanh approximation of GELU, which the original repository has used since February 2019.

    >>> [round(float(y), 4) for y in gelu_new(jnp.array([-1.0, 0.0, 1.0]))]
    [-0.1588, 0.0, 0.8412]
    """
    return jax.nn.gelu(x, approximate=True)


def quick_gelu(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return x · sigmoid(1.702 x), an approximation of GELU.

    >>> [round(float(y), 4) for y in quick_gelu(jnp.array([-1.0, 0.0, 1.0]))]
    [-0.1542, 0.0, 0.8458]
    """
    return x * jax.nn.sigmoid(1.702 * x)


def laplace(x: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the normal distribution function with a mean of √½ and a variance of 1/4π, a bounded stand-in for `relu2`.

    Ma et al. 2022, https://arxiv.org/abs/2209.10655.

    >>> [round(float(y), 4) for y in laplace(jnp.array([0.0, 0.707107, 1.0]))]
    [0.0061, 0.5, 0.8504]
    """
    return 0.5 * (1 + lax.erf((x - 0.707107) / (0.282095 * math.sqrt(2))))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {  # by their names in transformers
    "gelu": gelu,
    "gelu_10": lambda x: jnp.clip(gelu(x), -10, 10),
    "gelu_accurate": gelu_new,
    "gelu_fast": gelu_new,  # the same formula
    "gelu_new": gelu_new,
    "gelu_python": gelu,
    "gelu_python_tanh": gelu_new,
    "gelu_pytorch_tanh": gelu_new,
    "hardswish": jax.nn.hard_swish,
    "laplace": laplace,
    "leaky_relu": jax.nn.leaky_relu,
    "linear": lambda x: x,
    "mish": jax.nn.mish,
    "quick_gelu": quick_gelu,
    "relu": jax.nn.relu,
    "relu2": lambda x: jnp.square(jax.nn.relu(x)),
    "relu6": jax.nn.relu6,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}


def activation(name: str) -> Callable[[Array], Array]:
    """Return the activation function with this name in configurations.

    >>> activation("gelu") is gelu
    True
    """
    if name not in ACTIVATIONS:
        hint = did_you_mean(name, ACTIVATIONS)
        raise ValueError(f"no activation {name!r}; expected one of {', '.join(sorted(ACTIVATIONS))}{hint}")
    return ACTIVATIONS[name]
