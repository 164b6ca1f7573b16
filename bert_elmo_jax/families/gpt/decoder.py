"""Writing with a GPT: one step over new pieces, with a memory of the keys and values of the pieces before them."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int

from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.model import layer_parts
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.nn import dense, embed, layer_norm
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.transformer import FeedForward

HIDDEN = -1e30  # the score of a slot that is not visible; finite, so that a piece that sees nothing stays finite
# On a CPU, bfloat16 products of fewer rows than this are many times slower than those in float32.
FEW = 8
Memory = dict[str, dict[str, Array]]  # layer -> "key" and "value", [B, A, slots, H] each


def make_decoder(config: GptConfig) -> Decoder:
    """Return the functions that write with a configuration.

    A step computes the logits of all its pieces. A caller that reads only the last ones takes two steps inside one
    compiled function: all pieces but the last, whose unread logits the compiler then leaves out, and the last piece.
    """

    def prepare(params: Any) -> dict[str, Any]:
        # A product with the table as stored, [V, D], takes one and a half times as long for one row on a CPU.
        return {"encoder": params["encoder"], "softmax": {"kernel": params["encoder"]["embeddings"]["word"].T}}

    def start(params: Any, prompt: AnyArray, mask: AnyArray | None, slots: Any) -> Memory:
        shape = (prompt.shape[0], config.num_heads, slots, config.head_size)
        empty = jnp.zeros(shape, config.dtype)
        return {f"layer_{i}": {"key": empty, "value": empty} for i in range(config.num_layers)}

    ends = () if config.end_id is None else (config.end_id,)
    return Decoder(start, functools.partial(decode, config), ends, config.pad_id, config.max_positions, prepare=prepare)


def decode(
    config: GptConfig,
    params: Mapping[str, Any],
    memory: Memory,
    tokens: Int[AnyArray, "B T"],
    positions: Int[AnyArray, "B T"],
    at: Int[AnyArray, ""] | int,
    visible: Bool[AnyArray, "B S"],
) -> tuple[Float32[Array, "B T V"], Memory]:
    """Return the logits after each of T pieces, and the memory with their keys and values in the slots from `at` on.

    A piece in an empty slot may have any position and changes no other. With `at` as a plain number, slots after the
    new pieces are not read.
    """
    reduced = config.dtype != "float32"  # asked first, because the sizes of an export are symbols
    few = reduced and tokens.shape[0] * tokens.shape[1] < FEW and jax.default_backend() == "cpu"
    c = dataclasses.replace(config, dtype="float32") if few else config
    t, slots, encoder = tokens.shape[1], visible.shape[1], params["encoder"]
    table, places = encoder["embeddings"], jnp.maximum(jnp.asarray(positions), 0)
    x = (embed(table["word"], tokens) + embed(table["position"], places)).astype(c.dtype)
    end = at + t if isinstance(at, int) else slots
    before = jnp.arange(end)[None, :] <= at + jnp.arange(t)[:, None]
    sees = jnp.asarray(visible)[:, None, :end].astype(bool) & jnp.broadcast_to(before[None], (tokens.shape[0], t, end))
    written: Memory = {}
    for i in range(c.num_layers):
        p = encoder[f"layer_{i}"]
        x, written[f"layer_{i}"] = _attend(c, p["attention"], memory[f"layer_{i}"], x, at, sees, c.query_scale(i))
        x = FeedForward(c, layer_parts(c)).apply({"params": p["feed_forward"]}, x)  # type: ignore[assignment]
    if c.norm_first:
        x = layer_norm(x, **encoder["norm"], eps=c.norm_eps)
    kernel = params["softmax"]["kernel"] if "softmax" in params else table["word"].T
    return jnp.matmul(x, kernel.astype(x.dtype), preferred_element_type=jnp.float32), written


def _attend(
    config: GptConfig,
    p: Mapping[str, Any],
    memory: Mapping[str, Array],
    x: Float[Array, "B T D"],
    at: Int[AnyArray, ""] | int,
    sees: Bool[Array, "B T E"],
    scale: float,
) -> tuple[Float[Array, "B T D"], dict[str, Array]]:
    """Return the output of a layer's attention, and its memory with the new keys and values."""
    c, (b, t, _) = config, x.shape
    read = layer_norm(x, **p["norm"], eps=c.norm_eps) if c.norm_first else x

    def project(name: str) -> Float[Array, "B A T H"]:
        return dense(read, **p[name]).reshape(b, t, c.num_heads, c.head_size).swapaxes(1, 2)

    new = {name: project(name).astype(memory[name].dtype) for name in ("key", "value")}
    memory = {name: lax.dynamic_update_slice_in_dim(memory[name], new[name], at, axis=2) for name in new}
    key, value = (memory[name][:, :, : sees.shape[2]] for name in ("key", "value"))
    query = project("query") * (scale / c.head_size**0.5)
    scores = jnp.einsum("bath,bash->bats", query, key, preferred_element_type=jnp.float32)
    maps = jax.nn.softmax(jnp.where(jnp.broadcast_to(sees[:, None], scores.shape), scores, HIDDEN))
    y = jnp.einsum("bats,bash->bath", maps.astype(value.dtype), value).swapaxes(1, 2).reshape(b, t, c.hidden_size)
    x = x + dense(y, **p["output"])
    return x if c.norm_first else layer_norm(x, **p["norm"], eps=c.norm_eps), memory
