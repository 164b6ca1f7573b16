"""The Transformer's step that writes a translation: `Family.decoder`."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Bool, Float, Float32, Int

from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.embeddings import Embeddings
from bert_elmo_jax.families.transformer.model import Transformer, piece_logits
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.decoder_layer import DecoderLayer
from bert_elmo_jax.nn.matrix_product import cast_kernels

Params = Mapping[str, Any]
Memory = dict[str, Any]


def transformer_decoder(config: TransformerConfig) -> Decoder:
    """Return the functions that write the target of a source, one piece after the other.

    `start` encodes the source and keeps its keys and values, so a step computes only the new pieces.
    """
    side = config.target
    layer: Any = DecoderLayer(side)
    numbers = range(side.num_layers)

    def prepare(params: Params) -> dict[str, Any]:
        if "decoder" not in params:
            raise ValueError("these weights have only the encoder of a Transformer: nothing can be written with them")
        dtype = jnp.dtype(config.dtype)
        cast = {name: cast_kernels(part, dtype) for name, part in params.items() if name in ("encoder", "decoder")}
        cast["softmax"] = {"table": output_table(config, params).astype(dtype)}
        return cast

    def start(params: Params, prompt: Int[AnyArray, "B T"], mask: Int[AnyArray, "B T"], slots: int) -> Memory:
        segments = jnp.asarray(mask).astype(jnp.int32)
        # A batch may have more places than the model has positions; the excess is padding.
        places = jnp.minimum(jnp.arange(prompt.shape[1]), config.max_positions - 1)
        positions = jnp.broadcast_to(places[None, :], prompt.shape)
        output: Any = Transformer(config).apply({"params": params["encoder"]}, prompt, None, positions, segments)
        begun = [
            layer.apply({"params": params["decoder"][f"layer_{i}"]}, output.last, slots, method="begin")
            for i in numbers
        ]
        target, source = ({f"layer_{i}": both[part] for i, both in zip(numbers, begun)} for part in (0, 1))
        return {"own": target, "source": {"mask": segments > 0, **source}}

    def step(
        params: Params,
        memory: Memory,
        tokens: Int[AnyArray, "B U"],
        positions: Int[AnyArray, "B U"],
        at: Any,
        visible: Bool[AnyArray, "B S"],
    ) -> tuple[Float32[AnyArray, "B U V"], Memory]:
        p, mask = params["decoder"], memory["source"]["mask"]
        words = params["encoder"]["embeddings"]["word"] if side.share_embeddings else None
        x, _ = Embeddings(side).apply({"params": p.get("embeddings", {})}, tokens, positions, words)
        new, slots = tokens.shape[1], visible.shape[1]
        before = jnp.arange(slots)[None, :] <= at + jnp.arange(new)[:, None]
        sees = jnp.asarray(visible).astype(bool)[:, None, :] & before[None]
        sees_source = jnp.broadcast_to(mask[:, None, :], (tokens.shape[0], new, mask.shape[1]))
        written = {}
        for name, slots_of_layer in memory["own"].items():
            x, written[name] = layer.apply(
                {"params": p[name]}, x, slots_of_layer, memory["source"][name], at, sees, sees_source, method="step"
            )
        table = params["softmax"]["table"] if "softmax" in params else output_table(config, params)
        return piece_logits(x, table, p.get("output_bias")), {"own": written, "source": memory["source"]}

    return Decoder(
        start=start,
        step=step,
        ends=config.end_ids,
        pad=config.pad_id,
        most=config.max_positions,
        first=config.start_id,
        forbidden=config.forbidden_ids,
        prepare=prepare,
        forced_end=config.forced_end_id,
        renormalises=config.renormalize_logits,
        vocab_size=side.vocab_size,
        defaults=config.writing,
    )


def output_table(config: TransformerConfig, params: Params) -> Float[AnyArray, "V D"]:
    """Return the table that the softmax reads."""
    if not config.tie_output:
        return params["decoder"]["output"]
    return params["encoder" if config.share_embeddings else "decoder"]["embeddings"]["word"]
