"""ULMFiT's classifier: last, largest and mean vector of a document, then batch norm, dropout and linear layers.

Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, section 3.3. The pool is filled part by part, so a document of
any length needs the memory of one part.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.nn import dropout
from bert_elmo_jax.nn.any_array import AnyArray

EPSILON = 1e-5  # of batch norm
MOMENTUM = 0.1  # the share of a batch in the running mean and variance


class Pool(NamedTuple):
    """Running figures of B documents after some of their words; `length` is the number of words read."""

    last: Float32[Array, "B D"]
    largest: Float32[Array, "B D"]
    total: Float32[Array, "B D"]
    length: Int[Array, " B"]


def start_pool(rows: int, width: int) -> Pool:
    """Return the pool before the first word."""
    zeros = jnp.zeros((rows, width))
    return Pool(zeros, jnp.full_like(zeros, -jnp.inf), zeros, jnp.zeros(rows, jnp.int32))


def add_to_pool(pool: Pool, hidden: Float[AnyArray, "B T D"], lengths: Int[AnyArray, " B"]) -> Pool:
    """Return the pool after the next `lengths` words of each document; a length of 0 changes nothing."""
    hidden, lengths = jnp.asarray(hidden).astype(jnp.float32), jnp.asarray(lengths)
    real = (jnp.arange(hidden.shape[1], dtype=lengths.dtype)[None, :] < lengths[:, None])[:, :, None]
    end = jnp.maximum(lengths - 1, 0)[:, None, None]
    last = jnp.take_along_axis(hidden, end, axis=1)[:, 0]
    return Pool(
        jnp.where(lengths[:, None] > 0, last, pool.last),
        jnp.maximum(pool.largest, jnp.where(real, hidden, -jnp.inf).max(axis=1)),
        pool.total + jnp.where(real, hidden, 0.0).sum(axis=1),
        pool.length + lengths.astype(pool.length.dtype),
    )


def read_pool(pool: Pool, modes: str = "last+max+mean") -> Float32[Array, "B _"]:
    """Return last, largest and mean vector side by side, or some of them; zeros for a document without words.

    >>> pool = add_to_pool(start_pool(1, 1), jnp.array([[[1.0], [6.0], [2.0]]]), jnp.array([3]))
    >>> read_pool(pool).tolist(), read_pool(pool, "max").tolist()
    ([[2.0, 6.0, 3.0]], [[6.0]])
    """
    vectors = {
        "last": pool.last,
        "max": jnp.where((pool.length > 0)[:, None], pool.largest, 0.0),
        "mean": pool.total / jnp.maximum(pool.length, 1)[:, None].astype(jnp.float32),
    }
    return jnp.concatenate([vectors[mode] for mode in modes.split("+")], axis=-1)


def init_pool_classifier(key: PRNGKeyArray, width: int, sizes: Sequence[int]) -> dict[str, Any]:
    """Return fresh parameters for vectors of `width` numbers; `sizes` are the linear layers', the classes last."""
    draw, inputs, params = nn.initializers.he_normal(), width, {}
    for n, (sub, size) in enumerate(zip(jax.random.split(key, len(sizes)), sizes)):
        zeros, ones = jnp.zeros(inputs), jnp.ones(inputs)
        norm = {"scale": ones, "bias": zeros, "mean": zeros, "variance": ones}
        params[f"layer_{n}"] = {"norm": norm, "kernel": draw(sub, (inputs, size), jnp.float32)}
        inputs = size
    return params


def classify_pooled(params: Mapping[str, Any], pooled: Float[AnyArray, "B I"]) -> Float32[Array, "B C"]:
    """Return the logits of pooled vectors; batch norm uses its running mean and variance."""
    x = jnp.asarray(pooled).astype(jnp.float32)
    for n in range(len(params)):
        p = params[f"layer_{n}"]
        x = _linear(p, _normalise(p["norm"], x, p["norm"]["mean"], p["norm"]["variance"]), n, len(params))
    return x


def train_pooled(
    params: Mapping[str, Any],
    pooled: Float[AnyArray, "B I"],
    key: PRNGKeyArray | None,
    rates: Sequence[float],
    weights: Float[AnyArray, " B"] | None = None,
    axis: str | None = None,
) -> tuple[Float32[Array, "B C"], dict[str, dict[str, Array]]]:
    """Return the logits by the mean and variance of this batch, and the new running ones of each layer.

    `rates` are the dropout rates of the layers. The running figures have no gradient: replace them after the step.
    Rows whose weight is 0 are not counted. If a single row is left, it has no variance, and the running figures take
    the place of the batch's. With the `axis` of `pmap`, the rows of all devices are one batch.
    """
    if len(rates) != len(params):
        raise ValueError(f"{len(rates)} dropout rates were given for {len(params)} layers; expected one for each")
    if len(pooled) < 2 and axis is None:
        raise ValueError("batch norm needs at least two documents in a training batch; one was given")
    x = jnp.asarray(pooled).astype(jnp.float32)
    counted = jnp.ones(len(x), bool) if weights is None else jnp.asarray(weights) > 0
    keys: Sequence[Any] = [None] * len(params) if key is None else list(jax.random.split(key, len(params)))
    running = {}
    for n, (sub, rate) in enumerate(zip(keys, rates)):
        p = params[f"layer_{n}"]
        mean, variance, running[f"layer_{n}"] = _batch_figures(p["norm"], x, counted, axis)
        x = _linear(p, dropout(_normalise(p["norm"], x, mean, variance), rate, sub), n, len(params))
    return x, running


def running_figures(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the running mean and variance of each layer, as `train_pooled` returns them."""
    return {name: {part: layer["norm"][part] for part in ("mean", "variance")} for name, layer in params.items()}


def with_figures(params: Mapping[str, Any], running: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters with other running figures."""
    return {name: {**layer, "norm": {**layer["norm"], **running[name]}} for name, layer in params.items()}


def _batch_figures(
    norm: Mapping[str, Any], x: Float32[Array, "B I"], counted: Bool[Array, " B"], axis: str | None
) -> tuple[Array, Array, dict[str, Array]]:
    """Return mean and variance of the rows that count, and the new running ones; a single row takes those in `norm`."""

    def over_devices(total: Array) -> Array:
        return total if axis is None else jax.lax.psum(total, axis)

    count = over_devices(counted.sum().astype(jnp.float32))
    share = (counted / jnp.maximum(count, 1.0))[:, None]
    mean = over_devices((x * share).sum(axis=0))
    variance = over_devices((jnp.square(x - mean[None]) * share).sum(axis=0))
    several = count > 1
    unbiased = variance * (count / jnp.maximum(count - 1, 1.0))
    old = {name: jnp.asarray(norm[name]) for name in ("mean", "variance")}
    new = {"mean": mean, "variance": unbiased}
    moved = {name: jnp.where(several, (1 - MOMENTUM) * old[name] + MOMENTUM * new[name], old[name]) for name in new}
    mean, variance = jnp.where(several, mean, old["mean"]), jnp.where(several, variance, old["variance"])
    return mean, variance, jax.lax.stop_gradient(moved)


def _normalise(norm: Mapping[str, Any], x: Array, mean: Any, variance: Any) -> Array:
    factor = jnp.asarray(norm["scale"]) * jax.lax.rsqrt(jnp.asarray(variance) + EPSILON)
    return (x - jnp.asarray(mean)[None]) * factor[None] + jnp.asarray(norm["bias"])[None]


def _linear(p: Mapping[str, Any], x: Array, number: int, layers: int) -> Array:
    y = x @ jnp.asarray(p["kernel"])
    return y if number == layers - 1 else jax.nn.relu(y)
