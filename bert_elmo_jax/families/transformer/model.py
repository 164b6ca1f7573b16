"""The Transformer: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.

The encoder is a module of pieces like a BERT's, without types; the decoder is a head that reads its last layer. The
norms follow the residuals, as in the paper and in Marian.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, no_type_check

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.encoders.encoded import show_shapes
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.embeddings import Embeddings
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.decoder_layer import DecoderLayer
from bert_elmo_jax.nn.dropout import dropout, dropout_options
from bert_elmo_jax.nn.layer_loop import LayerCall, run_layers
from bert_elmo_jax.nn.layers import layer_numbers, truncated_normal
from bert_elmo_jax.nn.matrix_product import word_logits
from bert_elmo_jax.nn.parameter import parameter
from bert_elmo_jax.nn.transformer import Layer, LayerParts


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class DecoderOutput:
    """The result of the decoder; `layers` and the attention maps are None unless they were requested."""

    last: Float[Array, "B U D"]
    logits: Float32[Array, "B U V"]
    layers: Float[Array, "N B U D"] | None = None
    attentions: Float32[Array, "L B A U U"] | None = None
    cross_attentions: Float32[Array, "L B A U T"] | None = None


class Transformer(PieceModule):
    """The encoder; see `PieceModule`. It has no types."""

    config: TransformerConfig
    add_pooler: bool = False

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the embeddings, scaled and with positions."""
        x, _ = Embeddings(self.config, name="embeddings")(tokens, positions)
        return dropout(x, self.config.dropout, key)

    def layer_calls(self, positions: Any) -> Sequence[LayerCall]:
        """Return the layers."""
        parts = LayerParts(hidden_rate=self.config.activation_dropout)
        return [LayerCall(Layer(self.config, parts, parent=None))] * self.config.num_layers


class TransformerDecoder(nn.Module):
    """The decoder, with the configuration `TransformerConfig.target`; it has dropout if it is given `key`."""

    config: Any

    @nn.compact
    def __call__(
        self,
        source: Float[Array, "B T D"],
        words: Float[AnyArray, "V D"],
        target: Int[AnyArray, "B U"] | None = None,
        positions: Int[AnyArray, "B U"] | None = None,
        segments: Int[AnyArray, "B U"] | None = None,
        source_segments: Int[AnyArray, "B T"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
        layers: str | Sequence[int] | None = None,
        attentions: bool = False,
    ) -> DecoderOutput:
        """Return the logits of the pieces after each piece of `target`, by default of the first.

        `source` is the encoder's last layer and `words` its table of embeddings. Pieces see the source's pieces of
        their segment.
        """
        c = self.config
        if target is None:
            target = jnp.full((len(source), 1), c.start_id, jnp.int32)
        numbers = layer_numbers(layers, c.num_layers)
        keys = None if key is None else jax.random.split(key, c.num_layers + 1)
        x, table = Embeddings(c, name="embeddings")(target, positions, words if c.share_embeddings else None)
        if not c.tie_output:
            stddev = c.hidden_size**-0.5 if c.initializer_range is None else c.initializer_range
            table = parameter(self, "output", truncated_normal(stddev), (c.vocab_size, c.hidden_size))
        bias = parameter(self, "output_bias", nn.initializers.zeros, (c.vocab_size,)) if c.output_bias else None
        x = dropout(x, c.dropout, None if keys is None else keys[0])
        call = LayerCall(DecoderLayer(c, parent=None), (source, source_segments))
        x, hidden, maps = run_layers(
            self, [call] * c.num_layers, x, segments, None, None if keys is None else keys[1:], numbers=numbers,
            maps=attentions,
        )  # fmt: skip
        to_target, to_source = (None, None) if maps is None else maps
        return DecoderOutput(x, piece_logits(x, table, bias), hidden, to_target, to_source)


def piece_logits(
    x: Float[Array, "B U D"], table: Float[AnyArray, "V D"], bias: Float[AnyArray, " V"] | None = None
) -> Float32[Array, "B U V"]:
    """Return the scores of all pieces in float32; the bias is a constant that training does not change."""
    logits = word_logits(x, table)
    return logits if bias is None else logits + jax.lax.stop_gradient(bias)[None, None, :]


@no_type_check  # as above
@struct.dataclass(repr=False)
class PairOutput:
    """The result of encoder and decoder for a batch of pairs; without a target, the decoder's fields are None.

    The logits of a released classifier come from its head.

    Layer 0 of each side is the embeddings. `cross_attentions` are the maps from the target (fourth axis) to the source.
    """

    encoder_layers: Float[Array, "M B T D"] | None = None
    decoder_layers: Float[Array, "N B U D"] | None = None
    encoder_attentions: Float32[Array, "L B A T T"] | None = None
    decoder_attentions: Float32[Array, "L B A U U"] | None = None
    cross_attentions: Float32[Array, "L B A U T"] | None = None
    logits: Float32[Array, "B U V"] | None = None
    pooled: Float[Array, "B D"] | None = None  # of a BART

    @property
    def layers(self) -> Float[Array, "M B T D"] | None:
        """The layers of the encoder."""
        return self.encoder_layers

    @property
    def attentions(self) -> Float32[Array, "L B A T T"] | None:
        """The attention maps of the encoder."""
        return self.encoder_attentions

    def __repr__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        rows = next(value.shape[1] for value in shown.values() if value is not None)
        return show_shapes("PairOutput", rows, **shown)


def run_pair(
    config: TransformerConfig,
    params: Mapping[str, Any],
    source: Mapping[str, Int[AnyArray, "B T"] | None],
    target: Mapping[str, Int[AnyArray, "B U"] | None] | None = None,
    key: PRNGKeyArray | None = None,
    *,
    every: bool = False,
    maps: bool = False,
) -> PairOutput:
    """Return the logits of a batch of pairs; both sides have `tokens` and may have `positions` and `segments`.

    `every` also returns the layers of both sides, and `maps` the attention maps; an encoder with fused attention has
    no maps. A key turns dropout on.
    """
    layers = "all" if every else None
    encoder_key, decoder_key = (None, None) if key is None else (jax.random.fold_in(key, n) for n in range(2))
    encoded: Any = Transformer(config).apply(
        {"params": params["encoder"]}, source["tokens"], None, source.get("positions"), source.get("segments"),
        layers=layers, attentions=maps and config.attention == "reference", **dropout_options(encoder_key),
    )  # fmt: skip
    if target is None:
        return PairOutput(encoded.layers, encoder_attentions=encoded.attentions)
    decoded: Any = TransformerDecoder(config.target).apply(
        {"params": params["decoder"]}, encoded.last, params["encoder"]["embeddings"]["word"], target["tokens"],
        target.get("positions"), target.get("segments"), source.get("segments"),
        key=decoder_key, layers=layers, attentions=maps,
    )  # fmt: skip
    return PairOutput(
        encoded.layers, decoded.layers, encoded.attentions, decoded.attentions, decoded.cross_attentions,
        decoded.logits,
    )  # fmt: skip


@functools.lru_cache(maxsize=16)
def compile_pair(config: TransformerConfig) -> Callable[..., PairOutput]:
    """Return `run_pair`, compiled once for each shape and set of outputs, for all models of a configuration."""
    return jax.jit(functools.partial(run_pair, config), static_argnames=("every", "maps"))


def batch_logits(
    config: TransformerConfig, params: Mapping[str, Any], batch: Mapping[str, Any], key: PRNGKeyArray | None = None
) -> Float32[Array, "B U V"]:
    """Return the logits of a pair batch, whose targets are `target_out`; a key means dropout."""
    source = {name: batch[f"source_{name}"] for name in ("tokens", "positions", "segments")}
    target = {"tokens": batch["target_in"]}
    target |= {name: batch[f"target_{name}"] for name in ("positions", "segments")}
    logits = run_pair(config, params, source, target, key).logits
    assert logits is not None
    return logits
