"""Layers whose norms come first, as in GPT-2, ModernBERT and EuroBERT, from their parameters, by kernels for a GPU.

They have the parameters, the dropout and, but for rounding, the values of `nn.transformer.Layer`. The sum after a
feed-forward network and the next layer's norm are one kernel, so a layer passes on the last product without its sum.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bert_elmo_jax.gpu_switches import uses
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.attention import fused
from bert_elmo_jax.nn.dropout import dropout
from bert_elmo_jax.nn.gated import gated_unit
from bert_elmo_jax.nn.gpu import post_norm_layer
from bert_elmo_jax.nn.gpu.drop_add_norm import Rules, drop_add_norm
from bert_elmo_jax.nn.layers import dense
from bert_elmo_jax.nn.matrix_product import multiply
from bert_elmo_jax.nn.rotary import rotate
from bert_elmo_jax.nn.transformer import Layer, LayerParts

Params = Mapping[str, Any]


class Unsummed(NamedTuple):
    """The vectors between two layers: `x + dropout(y + bias)`, not yet added."""

    x: Float[Array, "B T D"]
    y: Float[Array, "B T D"]
    bias: Float[Array, " D"]
    key: PRNGKeyArray | None  # of dropout


def suits(config: Any, calls: Sequence[Any], maps: bool) -> bool:
    """Return whether all these layers are of a kind that has kernels here."""
    return (
        post_norm_layer.suits_attention(config, maps)
        and all(type(call.module) is Layer and call.module.parts.norm_first for call in calls)
        and all(argument is None for call in calls for argument in call.arguments[1:])  # the first are angles
    )


def begin(x: Float[Array, "B T D"], keys: Array) -> Unsummed:
    """Return the embeddings as if they came from a layer; of `keys` only the kind counts."""
    return Unsummed(x, jnp.zeros_like(x), jnp.zeros(x.shape[-1], jnp.float32), keys[0])


def finish(config: Any, call: Any, vectors: Unsummed) -> Float[Array, "B T D"]:
    """Return the sum after a layer."""
    parts: LayerParts = call.module.parts
    y = vectors.y + jnp.broadcast_to(vectors.bias.astype(vectors.y.dtype), vectors.y.shape)
    return vectors.x + dropout(y, output_rate(config, parts), vectors.key)


def output_rate(config: Any, parts: LayerParts) -> float:
    """Return the dropout of a feed-forward network's outputs."""
    rate: float = config.dropout if parts.output_rate is None else parts.output_rate
    return rate


def apply_layer(
    config: Any, call: Any, params: Params, vectors: Unsummed, segments: AnyArray | None, lengths: AnyArray | None,
    key: PRNGKeyArray,
) -> Unsummed:  # fmt: skip
    """Return the outputs of one layer."""
    parts: LayerParts = call.module.parts
    angles = call.arguments[0] if call.arguments else None
    keys = jax.random.split(key, 3)
    attention, feed_forward = params["attention"], params["feed_forward"]
    if parts.first_norm:
        x, read = add(config, parts, vectors, output_rate(config, parts), attention["norm"])
    else:  # a first layer that reads normalised embeddings
        x = read = vectors.x
    y = attend(config, parts, attention, read, segments, lengths, angles, keys[0])
    rate = config.dropout if parts.attention_rate is None else parts.attention_rate
    branch = Unsummed(x, *project(attention["output"], y), keys[1])
    x, read = add(config, parts, branch, rate, feed_forward["norm"])
    hidden = expand(config, parts, feed_forward, read, keys[2])
    return Unsummed(x, *project(feed_forward["down"], hidden), keys[2])


def add(
    config: Any, parts: LayerParts, vectors: Unsummed, rate: float, norm: Params
) -> tuple[Float[Array, "B T D"], Float[Array, "B T D"]]:
    """Return the sum, and its norm."""
    offset = norm.get("bias")
    offset = jnp.zeros(vectors.x.shape[-1], jnp.float32) if offset is None else offset
    rules = Rules(rate, config.norm_eps, returns_sum=True, centred=not parts.rms_norm)
    return drop_add_norm(vectors.x, vectors.y, vectors.bias, norm["scale"], offset, vectors.key, rules)


def project(params: Params, x: Float[Array, "B T F"]) -> tuple[Float[Array, "B T D"], Float[Array, " D"]]:
    """Return a product, and the bias that is still to be added, in float32."""
    kernel = params["kernel"]
    product = multiply(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), kernel).reshape(*x.shape[:-1], -1)
    bias = params.get("bias")
    return product, jnp.zeros(kernel.shape[1], jnp.float32) if bias is None else jnp.asarray(bias).astype(jnp.float32)


def attend(
    config: Any, parts: LayerParts, params: Params, x: Float[Array, "B T D"], segments: AnyArray | None,
    lengths: AnyArray | None, angles: Any, key: PRNGKeyArray,
) -> Float[Array, "B T D"]:  # fmt: skip
    """Return the outputs of the heads side by side."""
    b, t, _ = x.shape
    pairs = getattr(config, "key_value_heads", None) or config.num_heads
    masked = uses("qkv") and parts.attention_bias and angles is None and pairs == config.num_heads
    if masked:
        query, key_, value = post_norm_layer.project_together(config, params, x, lengths)[0]
    else:
        query, key_, value = (
            dense(x, params[name]["kernel"], params[name].get("bias")).reshape(b, t, heads, -1)
            for name, heads in (("query", config.num_heads), ("key", pairs), ("value", pairs))
        )
    if angles is not None:
        query, key_ = rotate(query, angles), rotate(key_, angles)
    if pairs < config.num_heads:
        key_, value = (jnp.repeat(part, config.num_heads // pairs, axis=2) for part in (key_, value))
    rules: dict[str, Any] = {"lengths": lengths, "causal": config.causal, "window": parts.window}
    rules |= {"dropout": config.attention_dropout, "dropout_key": key}
    return fused(query, key_, value, segments, **rules, mask_gradients=not masked).reshape(b, t, -1)


def expand(
    config: Any, parts: LayerParts, params: Params, x: Float[Array, "B T D"], key: PRNGKeyArray
) -> Float[Array, "B T F"]:
    """Return the hidden units of the feed-forward network, after their dropout."""
    if parts.gated:
        gate, up = (dense(x, params[name]["kernel"], params[name].get("bias")) for name in ("gate", "up"))
        return dropout(gated_unit(gate, up, config.activation), parts.hidden_rate, key)
    hidden_key = None if not parts.hidden_rate else jax.random.fold_in(key, 1)
    return dropout(post_norm_layer.expand(config, params["up"], x), parts.hidden_rate, hidden_key)
