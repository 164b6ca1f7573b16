"""A linear layer with BERT's initialisation."""

import math
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from bert_elmo_jax.nn.any_array import AnyArray

Initialiser = Callable[..., Array]


def truncated_normal(stddev: float) -> Initialiser:
    """Return an initialiser that draws from a normal distribution cut at two standard deviations.

    As in TensorFlow and BERT's `initializer_range`, `stddev` belongs to the distribution before the cut, so the values
    have a deviation of 0.8796 · stddev. (`variance_scaling` would correct for the cut.)

    >>> import jax
    >>> from bert_elmo_jax.nn import truncated_normal
    >>> drawn = truncated_normal(0.02)(jax.random.key(0), (1000, 1000))
    >>> bool(abs(drawn).max() <= 0.04), round(float(drawn.std()), 4)
    (True, 0.0176)
    """
    return jax.nn.initializers.truncated_normal(stddev)


def dense(x: Float[Array, "*B I"], kernel: Float[AnyArray, "I O"], bias: Float[AnyArray, " O"]) -> Float[Array, "*B O"]:
    """Return `x @ kernel + bias`, computed in the type of `x`.

    >>> import jax.numpy as jnp
    >>> from bert_elmo_jax.nn import dense
    >>> dense(jnp.ones((4, 2, 3), jnp.bfloat16), jnp.ones((3, 5)), jnp.ones(5)).dtype
    dtype(bfloat16)
    """
    # Flattened, so that the kernel's gradient is a plain matrix product: on a CPU, XLA sums over two axes at half the
    # speed, which costs a sixth of a BERT training step.
    y = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ kernel.astype(x.dtype)
    y = y + jnp.broadcast_to(bias.astype(x.dtype), y.shape)
    return y.reshape(*x.shape[:-1], kernel.shape[1])


class Dense(nn.Module):
    """`dense` with parameters `kernel [I, O]` and `bias [O]`.

    >>> import jax, jax.numpy as jnp
    >>> from bert_elmo_jax.nn import Dense
    >>> variables = Dense(5).init(jax.random.key(0), jnp.ones((2, 3)))
    >>> jax.tree.map(jnp.shape, variables["params"])
    {'bias': (5,), 'kernel': (3, 5)}
    """

    size: int
    stddev: float = 0.02
    dtype: DTypeLike = jnp.float32

    @nn.compact
    def __call__(self, x: Float[Array, "*B I"]) -> Float[Array, "*B {self.size}"]:
        """Apply the layer in `dtype`."""
        kernel = self.param("kernel", truncated_normal(self.stddev), (x.shape[-1], self.size))
        bias = self.param("bias", nn.initializers.zeros, (self.size,))
        return dense(x.astype(self.dtype), kernel, bias)
