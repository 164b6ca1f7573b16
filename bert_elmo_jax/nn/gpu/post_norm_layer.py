"""The layer of Vaswani et al. from its parameters, made of the kernels for a GPU.

It has the parameters, the dropout and, but for rounding, the values of `nn.transformer.Layer`. The vectors travel from
layer to layer twice, for the product and for the residual, so that the two gradients meet inside a kernel.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.nn.activations import activation
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import fused
from bert_elmo_jax.nn.gpu.drop_add_norm import Rules, drop_add_norm
from bert_elmo_jax.nn.gpu.gelu import BY_TANH, bias_gelu
from bert_elmo_jax.nn.gpu.heads import split_heads
from bert_elmo_jax.nn.layers import dense
from bert_elmo_jax.nn.matrix_product import multiply
from bert_elmo_jax.nn.transformer import Layer, LayerParts

Vectors = tuple[Float[Array, "B T D"], Float[Array, "B T D"]]
Params = Mapping[str, Any]


def suits_attention(config: Any, maps: bool) -> bool:
    """Return whether attention is cuDNN's, in 16 bits and with heads of the usual size."""
    return (
        not maps
        and config.attention == "fused"
        and jnp.dtype(config.dtype).itemsize == 2
        and getattr(config, "key_size", None) is getattr(config, "value_size", None) is None
    )


def suits(config: Any, calls: Sequence[Any], maps: bool) -> bool:
    """Return whether all these layers are of a kind that has kernels here."""
    return (
        suits_attention(config, maps)
        and all(type(call.module) is Layer and draws_alike(call.module.parts) == LayerParts() for call in calls)
        and all(argument is None for call in calls for argument in call.arguments)
    )


def draws_alike(parts: LayerParts) -> LayerParts:
    """Return the parts without what only initialises parameters."""
    return parts._replace(output_stddev=None, cut=LayerParts().cut)


def begin(x: Float[Array, "B T D"], keys: Any) -> Vectors:
    """Return the embeddings twice."""
    return x, x


def finish(config: Any, call: Any, vectors: Vectors) -> Float[Array, "B T D"]:
    """Return the vectors once."""
    return vectors[0]


def apply_layer(
    config: Any, call: Any, params: Params, x: Vectors, segments: AnyArray | None, lengths: AnyArray | None,
    key: PRNGKeyArray,
) -> Vectors:  # fmt: skip
    """Return the outputs of one layer, twice."""
    keys = jax.random.split(key, 3)
    attention, feed_forward = params["attention"], params["feed_forward"]
    rules: dict[str, Any] = {"lengths": lengths, "causal": config.causal, "dropout": config.attention_dropout}
    project = project_together if uses("qkv") else project_apart
    (query, key_, value), masked = project(config, attention, x[0], lengths)
    y = fused(query, key_, value, segments, **rules, dropout_key=keys[0], mask_gradients=not masked)
    x = add(config, attention, "output", x[1], y.reshape(*x[1].shape[:2], -1), keys[1])
    return add(config, feed_forward, "down", x[1], expand(config, feed_forward["up"], x[0]), keys[2])


def project_apart(
    config: Any, params: Params, x: Float[Array, "B T D"], lengths: AnyArray | None
) -> tuple[tuple[Array, ...], bool]:
    """Return queries, keys and values [B, T, A, H], and that padding's gradients are not masked."""
    parts = (params[name] for name in ("query", "key", "value"))
    shape = (*x.shape[:2], config.num_heads, -1)
    return tuple(dense(x, part["kernel"], part["bias"]).reshape(shape) for part in parts), False


def project_together(
    config: Any, params: Params, x: Float[Array, "B T D"], lengths: AnyArray | None
) -> tuple[tuple[Array, ...], bool]:
    """Return the same from one product, and that padding's gradients are masked."""
    parts = [params[name] for name in ("query", "key", "value")]
    kernel = jnp.concatenate([jnp.asarray(part["kernel"]).astype(x.dtype) for part in parts], axis=1)
    bias = jnp.concatenate([jnp.asarray(part["bias"]) for part in parts])
    real = None
    if lengths is not None:
        real = (jnp.arange(x.shape[1])[None, :] < jnp.asarray(lengths)[:, None]).astype(jnp.int32).ravel()
    together = multiply(x.reshape(-1, x.shape[-1]), kernel)
    shape = (*x.shape[:2], config.num_heads, -1)
    return tuple(part.reshape(shape) for part in split_heads(together, bias, real)), True


def expand(config: Any, params: Params, x: Float[Array, "B T D"]) -> Float[Array, "B T F"]:
    """Return the hidden units of the feed-forward network."""
    if uses("gelu") and "bias" in params and config.activation in ("gelu", *BY_TANH):
        product = multiply(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), params["kernel"])
        return bias_gelu(product, params["bias"], config.activation in BY_TANH).reshape(*x.shape[:-1], -1)
    return activation(config.activation)(dense(x, params["kernel"], params.get("bias")))


def add(
    config: Any, params: Params, name: str, x: Float[Array, "B T D"], hidden: Float[Array, "B T F"],
    key: PRNGKeyArray | None,
) -> Vectors:  # fmt: skip
    """Return `norm(x + dropout(dense(hidden)))`, twice."""
    product = multiply(hidden.reshape(math.prod(hidden.shape[:-1]), hidden.shape[-1]), params[name]["kernel"])
    norm = params["norm"]
    rules = Rules(config.dropout, config.norm_eps)
    return drop_add_norm(x, product.reshape(x.shape), params[name]["bias"], norm["scale"], norm["bias"], key, rules)
