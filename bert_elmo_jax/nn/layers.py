"""A linear layer with BERT's initialisation, layer normalisation, and embedding look-up."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Int8

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.int8_kernels import SCALE, multiply_int8
from bert_elmo_jax.nn.matrix_product import multiply
from bert_elmo_jax.nn.parameter import parameter


def layer_numbers(layers: str | Sequence[int] | None, num_layers: int) -> list[int]:
    """Return the numbers of the requested layers, from the embeddings (0) to the last (`num_layers`, or -1).

    >>> layer_numbers([0, -1], num_layers=12), layer_numbers("all", num_layers=2), layer_numbers(None, num_layers=2)
    ([0, 12], [0, 1, 2], [])
    """
    if layers is None:
        return []
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} was given; it is 'all' or a list of numbers such as [0, -1]")
        return list(range(num_layers + 1))
    outside = [i for i in layers if not -num_layers - 1 <= i <= num_layers]
    if outside:
        raise ValueError(
            f"there is no layer {outside[0]}: the layers of this model are 0 (the embeddings) to {num_layers}, "
            f"or, from the end, -1 to {-num_layers - 1}"
        )
    return [i % (num_layers + 1) for i in layers]


Initialiser = Callable[..., Array]


def truncated_normal(stddev: float, cut: float = 2.0) -> Initialiser:
    """Return an initialiser that draws from a normal distribution cut at `cut` standard deviations.

    As in TensorFlow and BERT's `initializer_range`, `stddev` belongs to the distribution before the cut, so the values
    have a deviation of 0.8796 · stddev. (`variance_scaling` would correct for the cut.)

    >>> drawn = truncated_normal(0.02)(jax.random.key(0), (1000, 1000))
    >>> bool(abs(drawn).max() <= 0.04), round(float(drawn.std()), 4)
    (True, 0.0176)
    """
    return jax.nn.initializers.truncated_normal(stddev, lower=-cut, upper=cut) if stddev else jax.nn.initializers.zeros


def dense(
    x: Float[Array, "*B I"],
    kernel: Float[AnyArray, "I O"] | Int8[AnyArray, "I O"],
    bias: Float[AnyArray, " O"] | None = None,
    kernel_scale: Float[AnyArray, " O"] | None = None,
) -> Float[Array, "*B O"]:
    """Return `x @ kernel + bias`, computed in the type of `x`; a kernel in int8 has a scale.

    >>> dense(jnp.ones((4, 2, 3), jnp.bfloat16), jnp.ones((3, 5)), jnp.ones(5)).dtype
    dtype(bfloat16)
    """
    # Flattened, so that the kernel's gradient is a plain matrix product: on a CPU, XLA sums over two axes at half the
    # speed, which costs a sixth of a BERT training step.
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    y = multiply(flat, kernel) if kernel_scale is None else multiply_int8(flat, kernel, kernel_scale)
    if bias is not None:
        y = _add_bias(y, jnp.asarray(bias))
    return y.reshape(*x.shape[:-1], kernel.shape[1])


@jax.custom_vjp
def _add_bias(x: Float[Array, "N O"], bias: Float[Array, " O"]) -> Float[Array, "N O"]:
    """Return `x + bias` in the type of `x`, with a bias gradient summed in float32.

    JAX's own gradient sums bfloat16, which is less exact, and on a CPU takes twenty times as long.
    """
    return x + jnp.broadcast_to(bias.astype(x.dtype), x.shape)


def _add_bias_backward(like: Array, g: Array) -> tuple[Array, Array]:
    wide = g if g.dtype.itemsize >= 4 else g.astype(jnp.float32)
    return g, wide.sum(0).astype(like.dtype)


# An empty array passes on the bias's type.
_add_bias.defvjp(lambda x, bias: (_add_bias(x, bias), jnp.zeros(0, bias.dtype)), _add_bias_backward)


class Dense(nn.Module):
    """`dense` with parameters `kernel [I, O]` and, unless `use_bias` is False, `bias [O]`.

    Without `stddev`, the kernel's values have the variance 2 / (I + O): Glorot and Bengio 2010.

    >>> variables = Dense(5).init(jax.random.key(0), jnp.ones((2, 3)))
    >>> jax.tree.map(jnp.shape, variables["params"])
    {'bias': (5,), 'kernel': (3, 5)}
    """

    size: int
    stddev: float | None = 0.02
    dtype: DTypeLike = jnp.float32
    use_bias: bool = True
    cut: float = 2.0  # of the initialiser, in standard deviations

    @nn.compact
    def __call__(self, x: Float[Array, "*B I"]) -> Float[Array, "*B {self.size}"]:
        """Apply the layer in `dtype`."""
        init = nn.initializers.glorot_normal() if self.stddev is None else truncated_normal(self.stddev, self.cut)
        kernel = parameter(self, "kernel", init, (x.shape[-1], self.size))
        bias = parameter(self, "bias", nn.initializers.zeros, (self.size,)) if self.use_bias else None
        scale = self.get_variable("params", SCALE) if kernel.dtype == jnp.int8 else None
        return dense(x.astype(self.dtype), kernel, bias, scale)


def layer_norm(
    x: Float[Array, "*B D"], scale: Float[AnyArray, " D"], bias: Float[AnyArray, " D"] | None, eps: float = 1e-12
) -> Float[Array, "*B D"]:
    """Normalise the last axis with a float32 mean and variance; the result has the type of `x`.

    >>> layer_norm(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2)).tolist()
    [[-1.0, 1.0]]
    """
    return _normalise(jnp.asarray(x), jnp.asarray(scale), None if bias is None else jnp.asarray(bias), eps)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _normalise(x: Array, scale: Array, bias: Array | None, eps: float) -> Array:
    return _normalise_forward(x, scale, bias, eps)[0]


def _normalise_forward(x: Array, scale: Array, bias: Array | None, eps: float) -> tuple[Array, Any]:
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    # In two passes, because E[x²] - E[x]² cancels where the mean is far from zero.
    centred = wide - mean
    inverse = lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + eps)
    y = centred * inverse * jnp.broadcast_to(scale, x.shape)
    y = y if bias is None else y + jnp.broadcast_to(bias, x.shape)
    if jax.default_backend() == "gpu":
        # Without the barrier, the gradient would compute both again, and write an array of float32 on the way.
        mean, inverse = lax.optimization_barrier((mean, inverse))
    return y.astype(x.dtype), (x, scale, bias, mean, inverse)


def _normalise_backward(eps: float, residuals: Any, g: Array) -> tuple[Array, Array, Array | None]:
    """Return the gradients, from two numbers per row instead of an array of normal numbers in float32."""
    x, scale, bias, mean, inverse = residuals
    normal, wide = (x.astype(jnp.float32) - mean) * inverse, g.astype(jnp.float32)
    rows = tuple(range(x.ndim - 1))
    scaled = wide * jnp.broadcast_to(scale, x.shape)
    along = (scaled * normal).mean(-1, keepdims=True)
    to_x = inverse * (scaled - scaled.mean(-1, keepdims=True) - normal * along)
    to_scale = (wide * normal).sum(rows).astype(scale.dtype)
    return to_x.astype(x.dtype), to_scale, None if bias is None else wide.sum(rows).astype(bias.dtype)


_normalise.defvjp(_normalise_forward, _normalise_backward)


class LayerNorm(nn.Module):
    """`layer_norm` with parameters `scale [D]` and, unless `use_bias` is False, `bias [D]`.

    >>> import jax
    >>> sorted(LayerNorm().init(jax.random.key(0), jnp.ones((2, 3)))["params"])
    ['bias', 'scale']
    """

    eps: float = 1e-12
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Normalise the last axis."""
        scale = parameter(self, "scale", nn.initializers.ones, (x.shape[-1],))
        bias = parameter(self, "bias", nn.initializers.zeros, (x.shape[-1],)) if self.use_bias else None
        return layer_norm(x, scale, bias, self.eps)


class RMSNorm(nn.Module):
    """Division by the root of the mean square, in float32, with the parameter `scale [D]`: Zhang and Sennrich 2019.

    >>> RMSNorm(0.0).apply({"params": {"scale": jnp.array([1.0, 2.0])}}, jnp.array([3.0, 3.0])).tolist()
    [1.0, 2.0]
    """

    eps: float = 1e-5

    @nn.compact
    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        """Normalise the last axis."""
        scale = jnp.asarray(parameter(self, "scale", nn.initializers.ones, (x.shape[-1],)))
        wide = x.astype(jnp.float32)
        normal = wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + self.eps)
        return (normal * jnp.broadcast_to(scale, x.shape)).astype(x.dtype)


def embed(table: Float[AnyArray, "V D"], ids: Int[AnyArray, "*B"]) -> Float[Array, "*B D"]:
    """Return the rows of `table` at `ids`; an id outside the table gives NaN.

    >>> embed(jnp.eye(2), jnp.array([1, 7, -1])).tolist()
    [[0.0, 1.0], [nan, nan], [nan, nan]]
    """
    ids = jnp.asarray(ids)
    if jnp.issubdtype(ids.dtype, jnp.signedinteger):
        ids = ids if ids.dtype.itemsize > 2 else ids.astype(jnp.int32)
        # jnp.take would count negative indices from the end.
        ids = jnp.where(ids < 0, jnp.full_like(ids, jnp.iinfo(ids.dtype).max), ids)
    # A GPU adds gradients to 16-bit rows one after the other, which takes a frequent row a thousand times as long.
    wide = jnp.float32 if jax.default_backend() == "gpu" and table.dtype.itemsize < 4 else table.dtype
    rows = jnp.take(table.astype(wide), ids, axis=0, mode="fill", fill_value=jnp.nan)
    return rows.astype(table.dtype)


def look_up(table: Float[AnyArray, "N U D"], words: Int[AnyArray, "T B"]) -> Float[Array, "T B D"]:
    """Return the rows of `words`, for N equal parts of the batch with a table each; NaN outside the table.

    >>> tables = jnp.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> look_up(tables, jnp.array([[0, 0], [1, 1]]))[..., 0].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    parts, (t, b) = table.shape[0], words.shape
    if b % parts:
        raise ValueError(f"a batch of {b} rows cannot be split evenly among {parts} tables of distinct words")
    rows = jax.vmap(embed, in_axes=(0, 1), out_axes=1)(table, words.reshape(t, parts, b // parts))
    return rows.reshape(t, b, table.shape[-1])
