"""The Transformer's step that writes a translation: `Family.decoder`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from bert_elmo_jax.families.decoder import Decoder
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.embeddings import Embeddings
from bert_elmo_jax.families.transformer.model import Transformer, piece_logits
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.decoder_layer import DecoderLayer, LayerMemory

Params = Mapping[str, Any]


class Memory(NamedTuple):
    """The keys and values of each layer, and the pieces of the source that are real."""

    layers: tuple[LayerMemory, ...]
    source: Bool[Array, "B T"]


def transformer_decoder(config: TransformerConfig) -> Decoder:
    """Return the functions that write the target of a source, one piece after the other.

    `start` encodes the source and keeps its keys and values, so a step computes only the new pieces.

    >>> transformer_decoder(TransformerConfig(vocab_size=50, max_positions=20)).first
    2
    """
    side = config.target
    layer: Any = DecoderLayer(side)

    def start(params: Params, prompt: Int[AnyArray, "B T"], mask: Int[AnyArray, "B T"], slots: int) -> Memory:
        encoder = Transformer(config)
        segments = jnp.asarray(mask).astype(jnp.int32)
        output: Any = encoder.apply({"params": params["encoder"]}, prompt, None, None, segments)
        layers = (params["decoder"][f"layer_{i}"] for i in range(side.num_layers))
        memories = tuple(layer.apply({"params": p}, output.last, slots, method="begin") for p in layers)
        return Memory(memories, segments > 0)

    def step(
        params: Params, memory: Memory, tokens: Int[AnyArray, "B U"], positions: Int[AnyArray, "B U"], at: Any,
        seen: Bool[AnyArray, "B S"],
    ) -> tuple[Float32[Array, "B U V"], Memory]:  # fmt: skip
        p = params["decoder"]
        words = params["encoder"]["embeddings"]["word"] if side.share_embeddings else None
        x, table = Embeddings(side).apply({"params": p.get("embeddings", {})}, tokens, positions, words)
        new, slots = tokens.shape[1], seen.shape[1]
        before = jnp.arange(slots)[None, :] <= at + jnp.arange(new)[:, None]
        own = jnp.asarray(seen).astype(bool)[:, None, :] & before[None]
        source = jnp.broadcast_to(memory.source[:, None, :], (len(tokens), new, memory.source.shape[1]))
        kept = []
        for i, of_layer in enumerate(memory.layers):
            weights = {"params": p[f"layer_{i}"]}
            x, of_layer = layer.apply(weights, x, of_layer, at, own, source, method="step")
            kept.append(of_layer)
        logits = piece_logits(x, table if side.tie_output else p["output"], p.get("output_bias"))
        return logits, Memory(tuple(kept), memory.source)

    return Decoder(
        start=start,
        step=step,
        ends=config.end_ids,
        pad=config.pad_id,
        most=config.max_positions,
        first=config.start_id,
        # Padding is never written, unless it ends a text.
        forbidden=tuple(sorted({*config.forbidden_ids, config.pad_id} - set(config.end_ids))),
    )
