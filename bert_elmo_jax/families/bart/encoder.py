"""The encoder object of a BART: vectors from its encoder, texts from its decoder."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.encoders.layout import PieceArrays
from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.bart.family import FAMILY
from bert_elmo_jax.families.bart.model import shift_right, two_sides
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.transformer.model import PairOutput, compile_pair
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.text import Tokenizer

Rows = Sequence[Sequence[int]]


class BartEncoder(PieceEncoder):
    """Weights, tokenizer and compiled model; made by `load`.

    `encode` and the other methods of a `PieceEncoder` give the vectors of the encoder; `generate` writes with the
    decoder: the summary of a text or its repaired form, depending on the training of the weights.

    >>> from bert_elmo_jax import load
    >>> model = load("tests/goldens/bart_tiny")
    >>> output = model.forward(tokens=[[0, 9, 8, 2]], target=[[2, 0, 9]])
    >>> output.layers.shape, output.logits.shape
    ((3, 1, 4, 24), (1, 3, 310))
    >>> model.generate(source=[[0, 9, 8, 2]], max_new=4, beams=2)[0][0].ids[0]
    0
    """

    def __init__(
        self, config: BartConfig, params: Mapping[str, Any], tokenizer: Tokenizer | None, source: str = "weights"
    ):
        super().__init__(FAMILY, config, params, tokenizer, source)

    @functools.cached_property
    def _run_pair(self) -> Callable[..., PairOutput]:
        run = compile_pair(self.config)
        return lambda params, *batch, **options: run(two_sides(params), *batch, **options)

    def forward(  # type: ignore[override] # a text and what the decoder reads
        self,
        tokens: Int[AnyArray, "B T"] | Rows,
        types: Int[AnyArray, "B T"] | Rows | None = None,
        mask: Int[AnyArray, "B T"] | Rows | None = None,
        target: Int[AnyArray, "B U"] | Rows | None = None,
    ) -> PairOutput:
        """Return all outputs for ids: all layers and attention maps of both sides, and the logits.

        `mask` is 1 for real pieces and 0 for padding; without it all are real. A BART has no `types`, which change
        nothing. `target` is the input of the decoder: its first piece is `config.start_id`, and `logits[:, n]` are for
        the piece after `target[:, n]`. Without it, the decoder reads the text itself, shifted by one place, so that
        `logits[:, n]` are for `tokens[:, n]`; a classifier then gives its `pooled` vectors and its own logits. `layers`
        and `attentions` are the encoder's; the decoder's have separate names.
        """
        ids = arguments.to_ids("tokens", tokens)
        arguments.check_batch(self.config, ids)
        real = arguments.to_mask("mask", mask, ids.shape)
        if target is None:
            decoded = np.asarray(shift_right(ids, None, self.config.start_id))
        else:
            decoded = arguments.to_ids("target", target)
            if len(decoded) != len(ids):
                raise ValueError(f"target has {len(decoded)} rows and tokens {len(ids)}: give one target for each text")
            arguments.check_batch(self.config.target, decoded)
        read = {"tokens": ids.astype(np.int32), "segments": None if real is None else real.astype(np.int32)}
        written = {"tokens": decoded.astype(np.int32)}
        output = self._run_pair(self.working_params, read, written, every=True, maps=True)
        if target is None and "pooler" in self.params["encoder"]:
            head = super().forward(ids, None, real)
            logits = output.logits if head.logits is None else head.logits
            output = dataclasses.replace(output, pooled=head.pooled, logits=logits)
        return output

    def mask_logits(self, arrays: PieceArrays) -> Float[Array, "B T V"]:
        """Return the logits of every piece of a text, whose gaps the decoder fills."""
        read = {"tokens": jnp.asarray(arrays.tokens), "segments": jnp.asarray(arrays.segments)}
        written = {"tokens": shift_right(arrays.tokens, None, self.config.start_id)}
        logits = self._run_pair(self.working_params, read, written, every=False, maps=False).logits
        assert logits is not None
        return logits
