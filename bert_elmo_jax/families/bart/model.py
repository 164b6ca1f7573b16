"""BART: Lewis et al. 2020, https://aclanthology.org/2020.acl-main.703.

The encoder reads a damaged text, and the decoder writes the original. The decoder is a part of the encoder's module, so
that task heads and adapters reach it: a classifier reads the decoder's state at the end of the text.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.piece_module import PooledRows
from bert_elmo_jax.families.transformer import decoding
from bert_elmo_jax.families.transformer.model import Transformer, TransformerDecoder, batch_logits
from bert_elmo_jax.generation.decoder import Decoder
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.nn.transformer import Pooler, at_positions


class Bart(Transformer):
    """The encoder, with the decoder inside; see `PieceModule`. `pooled` is read from the decoder."""

    config: BartConfig

    def setup(self) -> None:
        """Make the decoder, which only `pool` and the functions of pairs run."""
        self.decoder = TransformerDecoder(self.config.target)

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the embeddings, normalised and with positions."""
        x = super().embed(tokens, types, positions, key)
        if self.is_initializing():  # every BART has a decoder
            self.decoder(x, self._words)
        return x

    def pool(self, x: Float[Array, "B T D"], rows: PooledRows) -> Float[Array, "B D"] | Float[Array, "B S D"]:
        """Return the pooled vectors: the decoder's state at the end of each text, through a dense layer and tanh."""
        c = self.config
        b, t = rows.tokens.shape
        segments = rows.segments
        if segments is None and rows.lengths is not None:
            segments = (jnp.arange(t)[None, :] < jnp.asarray(rows.lengths)[:, None]).astype(jnp.int32)
        key = None if rows.deterministic else self.make_rng("dropout")
        target = shift_right(rows.tokens, rows.positions, c.start_id)
        state = self.decoder(x, self._words, target, rows.positions, segments, segments, key=key).last
        pooler = Pooler(c, self.POOLER, name="pooler")
        if rows.every:
            return pooler(state, None, True)
        marks = jnp.ones((b, t), jnp.int32) if segments is None else jnp.asarray(segments)
        firsts = jnp.zeros((b, 1), jnp.int32) if rows.firsts is None else jnp.asarray(rows.firsts)
        ends = find_ends(jnp.asarray(rows.tokens), marks, firsts, c.end_ids[0])
        states = at_positions(state, ends)
        pooled = pooler(states, None, True)
        return pooled[:, 0] if rows.firsts is None else pooled

    @property
    def _words(self) -> Float[AnyArray, "V D"]:
        words: Float[AnyArray, "V D"] = self.variables["params"]["embeddings"]["word"]
        return words


def shift_right(tokens: Int[AnyArray, "B T"], positions: Int[AnyArray, "B T"] | None, start: int) -> Int[Array, "B T"]:
    """Return the decoder's input for the texts of a batch: each begins with `start`, and lacks its last piece.

    >>> shift_right(jnp.array([[0, 7, 2, 0, 8, 2]]), jnp.array([[0, 1, 2, 0, 1, 2]]), 2).tolist()
    [[2, 0, 7, 2, 0, 8]]
    """
    tokens = jnp.asarray(tokens)
    first = jnp.arange(tokens.shape[1])[None, :] == 0 if positions is None else jnp.asarray(positions) == 0
    return jnp.where(first, start, jnp.roll(tokens, 1, axis=1))


def find_ends(
    tokens: Int[Array, "B T"], segments: Int[Array, "B T"], firsts: Int[Array, "B S"], end: int
) -> Int[Array, "B S"]:
    """Return the place of the last `end` of the text that begins at each of `firsts`, or of its last piece.

    >>> find_ends(jnp.array([[0, 7, 2, 0, 8]]), jnp.array([[1, 1, 1, 2, 2]]), jnp.array([[0, 3]]), 2).tolist()
    [[2, 4]]
    """
    size = tokens.shape[1]
    text = jnp.take_along_axis(segments, firsts, axis=1, mode="clip")
    inside: Bool[Array, "B S T"] = segments[:, None, :] == text[:, :, None]
    rank = jnp.arange(size)[None, :] + jnp.where(tokens == end, size, 0)
    return jnp.argmax(jnp.where(inside, rank[:, None, :], -1), axis=-1)


def two_sides(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as the functions of pairs read them, with the decoder next to the encoder."""
    encoder = {name: part for name, part in params["encoder"].items() if name != "decoder"}
    return {"encoder": encoder, "decoder": params["encoder"]["decoder"]}


def denoising_logits(
    config: BartConfig, params: Mapping[str, Any], batch: Mapping[str, Any], key: PRNGKeyArray | None = None
) -> Float32[Array, "B U V"]:
    """Return the logits of a pair batch of damaged texts and their originals; a key means dropout."""
    return batch_logits(config, two_sides(params), batch, key)


def bart_decoder(config: BartConfig) -> Decoder:
    """Return the functions that write the target of a source; see `transformer_decoder`."""
    decoder = decoding.transformer_decoder(config)
    assert decoder.prepare is not None
    prepare = decoder.prepare
    return decoder._replace(prepare=lambda params: prepare(two_sides(params)), forced_first=config.forced_start_id)
