"""The encoder object of a Transformer: vectors from its encoder, translations from its decoder."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.family import FAMILY
from bert_elmo_jax.families.transformer.model import PairOutput, run_pair
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.text import Tokenizer


class Translator(PieceEncoder):
    """Weights, tokenizer and compiled model; made by `load`.

    `encode` and all other methods of a `PieceEncoder` give the vectors of the encoder, which reads the source.

    >>> from bert_elmo_jax import load
    >>> model = load("tests/goldens/transformer_tiny")
    >>> model.forward(source=[[5, 6, 7]], target=[[179, 8]]).logits.shape
    (1, 2, 180)
    """

    def __init__(
        self, config: TransformerConfig, params: Mapping[str, Any], tokenizer: Tokenizer | None, source: str = "weights"
    ):
        super().__init__(FAMILY, config, params, tokenizer, source)
        self._run_pair = jax.jit(functools.partial(run_pair, config), static_argnames=("every", "maps"))

    @property
    def has_decoder(self) -> bool:
        """True if the weights have the decoder, without which nothing can be translated."""
        return "decoder" in self.params

    def forward(  # type: ignore[override] # two texts instead of one
        self,
        source: Int[AnyArray, "B T"],
        source_mask: Int[AnyArray, "B T"] | None = None,
        target: Int[AnyArray, "B U"] | None = None,
    ) -> PairOutput:
        """Return all outputs for ids: all layers and attention maps of both sides, and the logits.

        `source_mask` is 1 for real pieces and 0 for padding; without it all are real. `target` is the input of the
        decoder: its first piece is `config.start_id`, and `logits[:, n]` are for the piece after `target[:, n]`. A
        piece sees only the pieces before it, so a padded target needs no mask. Without a target, only the encoder runs.
        Fused attention has no maps of the encoder.
        """
        c = self.config
        tokens = arguments.to_ids("source", source)
        arguments.check_batch(c, tokens)
        mask = None if source_mask is None else arguments.to_ids("source_mask", source_mask, tokens.shape)
        if mask is not None and not np.isin(mask, (0, 1)).all():
            raise ValueError("source_mask holds other numbers than 0 (padding) and 1 (real)")
        read = {"tokens": tokens.astype(np.int32), "segments": None if mask is None else mask.astype(np.int32)}
        return self._run_pair(self.working_params, read, self._target(target, len(tokens)), every=True,
                              maps=self.has_maps)  # fmt: skip

    def _target(self, target: Int[AnyArray, "B U"] | None, rows: int) -> dict[str, Any] | None:
        """Return the decoder's inputs; raise if they do not fit the model."""
        if target is None:
            return None
        self.check_decoder()
        ids = arguments.to_ids("target", target)
        if len(ids) != rows:
            raise ValueError(f"target has {len(ids)} rows and source {rows}: give one target for each source")
        arguments.check_batch(self.config.target, ids)
        return {"tokens": ids.astype(np.int32)}

    def check_decoder(self) -> None:
        """Raise if the weights have no decoder."""
        if not self.has_decoder:
            raise ValueError(f"{self.source} has only the encoder of a Transformer: nothing can be translated with it")
