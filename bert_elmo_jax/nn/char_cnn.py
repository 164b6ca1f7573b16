"""ELMo's character CNN: Kim et al. 2016, https://arxiv.org/abs/1508.06615."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.linen.initializers import normal
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.layers import Initialiser, dense, embed

Dense = Mapping[str, AnyArray]  # `kernel` and `bias`
PAD = 261  # pads a word behind its end mark; has a learned embedding
EXPORTED_PLACES = 8  # positions of every word that an exported model multiplies at once
NUM_IDS = 261  # ids 1 to 261 have an embedding; 0, which pads sentences, is a vector of zeros


def convolve(
    characters: Int[AnyArray, "*N C"],
    embedding: Float[AnyArray, "261 E"],
    convolutions: Sequence[Dense],
    max_characters: int = 50,
    dtype: Any = jnp.float32,
) -> Float[Array, "*N F"]:
    """Return the maximum of each filter over all positions of a word of `max_characters`, before the activation.

    `characters` may be cut behind the longest word: the missing padding (0 in rows of 0) still takes part in the
    maximum. Kernels are [width, E, filters].

    >>> word = jnp.array([[259, 98, 260]])
    >>> convolve(word, jnp.ones((261, 4)), [{"kernel": jnp.ones((2, 4, 3)), "bias": jnp.zeros(3)}]).tolist()
    [[8.0, 8.0, 8.0]]
    """
    characters = jnp.asarray(characters)
    cut = characters.shape[-1]
    table = jnp.concatenate([jnp.zeros_like(embedding[:1]), jnp.asarray(embedding)]).astype(dtype)
    outputs = []
    for convolution in convolutions:
        kernel, bias = (jnp.asarray(convolution[part]).astype(dtype) for part in ("kernel", "bias"))
        # All windows that hold only padding are equal, so one is enough.
        missing = min(cut + kernel.shape[0], max_characters) - cut
        pad = jnp.where(characters[..., -1:] == 0, 0, PAD).astype(characters.dtype)
        padded = jnp.concatenate([characters, jnp.repeat(pad, missing, axis=-1)], axis=-1)
        x = embed(table, padded.reshape(math.prod(padded.shape[:-1]), padded.shape[-1]))
        largest = largest_products(x, kernel, places_at_once(x.shape[0]))
        outputs.append((largest + bias[None, :]).reshape(*characters.shape[:-1], len(bias)))
    return jnp.concatenate(outputs, axis=-1)


def places_at_once(words: Any) -> int | None:
    """Return how many positions of every word to multiply at once, or None for all by a convolution.

    On a CPU, about 512 rows: fewer multiply slowly, and the products of more leave the cache before the maximum is
    taken. On an accelerator a convolution, which needs no copy of the windows and is one operation. An export, whose
    number of words is a symbol, multiplies a few at a time.
    """
    if not isinstance(words, int):
        return EXPORTED_PLACES
    return max(1, 512 // max(words, 1)) if jax.default_backend() == "cpu" else None


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def largest_products(
    x: Float[Array, "N C E"], kernel: Float[Array, "W E F"], at_once: int | None
) -> Float[Array, "N F"]:
    """Return the maximum of the kernel's products with all windows of each row, `at_once` positions at a time.

    A custom gradient goes to the (first) position of the maximum. Unless `at_once` is None, there is no array of
    [N, C, F].
    """
    return _largest(x, kernel, at_once)[0]


def _convolve(x: Array, kernel: Array) -> Array:
    return lax.conv_general_dilated(x, kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))


def _larger(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the larger product and its position, the first of equal ones; NaN counts as largest."""
    first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1])) | jnp.isnan(a[0])
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def _windows(x: Array, width: int, places: Array) -> Array:
    """Return the windows at these positions, [N, places, width · E]."""
    at = places[:, None] + jnp.arange(width)[None, :]
    return x[:, at].reshape(x.shape[0], len(places), width * x.shape[-1])


def _largest(x: Array, kernel: Array, at_once: int | None) -> tuple[Array, Array]:
    """Return the largest products and their positions."""
    if at_once is None:
        products = _convolve(x, kernel)
        start = jnp.array(-jnp.inf, products.dtype), jnp.int32(0)
        places = lax.broadcasted_iota(jnp.int32, products.shape, 1)
        return lax.reduce((products, places), start, _larger, (1,))  # in one pass, so that it joins the convolution
    n, (width, size, filters) = x.shape[0], kernel.shape

    def step(best: tuple[Array, Array], places: Array) -> tuple[tuple[Array, Array], None]:
        largest, place = best
        windows = _windows(x, width, places).reshape(n * len(places), width * size)
        products = (windows @ kernel.reshape(width * size, filters)).reshape(n, len(places), filters)
        new = products.max(axis=1)
        first = jnp.where(products == new[:, None, :], places[None, :, None], places[-1]).min(axis=1)
        largest, place = jnp.maximum(new, largest), jnp.where(new > largest, first, place)
        return (largest, place), None

    start = jnp.full((n, filters), -jnp.inf, x.dtype), jnp.zeros((n, filters), jnp.int32)
    return lax.scan(step, start, _places(x, kernel, at_once))[0]


def _places(x: Array, kernel: Array, at_once: int) -> Array:
    """Return all positions, `at_once` per row; the last row may repeat some of the previous one."""
    count = x.shape[1] - len(kernel) + 1
    at_once = min(at_once, count)
    starts = np.minimum(np.arange(0, count, at_once), count - at_once)
    return jnp.asarray(starts[:, None] + np.arange(at_once)[None, :], jnp.int32)


def _forward(x: Array, kernel: Array, at_once: int | None) -> tuple[Array, tuple[Array, Array, Array]]:
    largest, place = _largest(x, kernel, at_once)
    return largest, (x, kernel, place)


def _backward(at_once: int | None, residuals: tuple[Array, Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel, place = residuals
    if at_once is None:
        places = jnp.arange(x.shape[1] - len(kernel) + 1, dtype=jnp.int32)
        won = place[:, None, :] == places[None, :, None]
        gradients = jnp.where(won, gradient[:, None, :], jnp.zeros((), gradient.dtype))
        return jax.vjp(_convolve, x, kernel)[1](gradients)
    n, (width, size, filters) = len(x), kernel.shape
    flat = kernel.reshape(width * size, filters)

    def step(sums: tuple[Array, Array, Array], places: Array) -> tuple[tuple[Array, Array, Array], None]:
        d_x, d_kernel, done = sums
        won = (place[:, None, :] == places[None, :, None]) & (places > done)[None, :, None]
        d_products = jnp.where(won, gradient[:, None, :], 0.0).reshape(n * len(places), filters)
        windows = _windows(x, width, places).reshape(n * len(places), width * size)
        d_kernel += jnp.dot(windows.T, d_products, preferred_element_type=jnp.float32)
        d_windows = (d_products @ flat.T).reshape(n, len(places), width, size).astype(jnp.float32)
        for k in range(width):
            zero = jnp.zeros((), places.dtype)  # indices must share a type, also with 64-bit integers
            at = (zero, places[0] + k, zero)
            before = lax.dynamic_slice(d_x, at, (n, len(places), size))
            d_x = lax.dynamic_update_slice(d_x, before + d_windows[:, :, k], at)
        return (d_x, d_kernel, places[-1]), None

    start = jnp.zeros(x.shape), jnp.zeros(flat.shape), jnp.int32(-1)
    (d_x, d_kernel, _), _ = lax.scan(step, start, _places(x, kernel, at_once))
    return d_x.astype(x.dtype), d_kernel.reshape(kernel.shape).astype(kernel.dtype)


largest_products.defvjp(_forward, _backward)


def highway(x: Float[Array, "*N F"], carry: Dense, transform: Dense) -> Float[Array, "*N F"]:
    """Return a gated mixture of the transformed input and the input: Srivastava et al. 2015.

    >>> shut = {"kernel": jnp.zeros((2, 2)), "bias": jnp.full(2, -100.0)}
    >>> highway(jnp.array([[3.0, 4.0]]), carry=shut, transform=shut).tolist()
    [[3.0, 4.0]]
    """
    gate = jax.nn.sigmoid(dense(x, **carry))
    return gate * jax.nn.relu(dense(x, **transform)) + (1 - gate) * x


class CharCNN(nn.Module):
    """Convolutions over a word's characters, highway layers and, if `size` is given, a projection.

    Parameters are initialised as in the original.

    >>> words = jnp.array([[259, 98, 260, 261], [0, 0, 0, 0]])
    >>> cnn = CharCNN(embedding_size=4, filters=((1, 2), (2, 3)), num_highways=1, size=6)
    >>> vectors, variables = cnn.init_with_output(jax.random.key(0), words)
    >>> vectors.shape, sorted(variables["params"])
    ((2, 6), ['conv_0', 'conv_1', 'embedding', 'highway_0', 'projection'])
    """

    embedding_size: int
    filters: Sequence[Sequence[int]]
    num_highways: int
    size: int | None
    activation: str = "relu"
    max_characters: int = 50
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, characters: Int[AnyArray, "*N C"]) -> Float[Array, "*N F"]:
        """Return one vector per word."""
        if not 1 <= characters.shape[-1] <= self.max_characters:
            raise ValueError(
                f"words have {characters.shape[-1]} characters, expected at least 1 and at most max_characters="
                f"{self.max_characters}"
            )
        embedding = self.param("embedding", uniform(1.0), (NUM_IDS, self.embedding_size))
        convolutions = []
        for n, (window, number) in enumerate(self.filters):
            inputs = window * self.embedding_size
            kernel = uniform(0.05) if self.activation == "relu" else normal(inputs**-0.5)
            shape = (window, self.embedding_size, number)
            convolutions.append(self.param(f"conv_{n}", init_dense, shape, kernel))
        x = convolve(characters, embedding, convolutions, self.max_characters, self.dtype)
        x = {"relu": jax.nn.relu, "tanh": jnp.tanh}[self.activation](x)
        width = x.shape[-1]
        kernel = normal(width**-0.5)
        for n in range(self.num_highways):
            x = highway(x, **self.param(f"highway_{n}", init_highway, width, kernel))
        if self.size is not None:
            x = dense(x, **self.param("projection", init_dense, (width, self.size), kernel))
        return x


def uniform(limit: float) -> Initialiser:
    """Return an initialiser that draws uniformly between -limit and limit."""
    return lambda key, shape: jax.random.uniform(key, shape, jnp.float32, -limit, limit)


def init_dense(key: PRNGKeyArray, shape: tuple[int, ...], kernel: Initialiser, bias: float = 0.0) -> Dense:
    """Initialise a layer with a kernel of this shape."""
    return {"kernel": kernel(key, shape), "bias": jnp.full(shape[-1], bias, jnp.float32)}


def init_highway(key: PRNGKeyArray, width: int, kernel: Initialiser) -> dict[str, Dense]:
    """Initialise a highway layer whose gate starts nearly closed."""
    keys = jax.random.split(key)
    return {
        "carry": init_dense(keys[0], (width, width), kernel, bias=-2.0),
        "transform": init_dense(keys[1], (width, width), kernel),
    }
