"""The encoder object of a Transformer: vectors from its encoder, translations from its decoder."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.family import FAMILY
from bert_elmo_jax.families.transformer.model import PairOutput, compile_pair
from bert_elmo_jax.nn.any_array import AnyArray
from bert_elmo_jax.text import Tokenizer

Rows = Sequence[Sequence[int]]
BEAMS = 4
DRAWS = ("temperature", "top_k", "top_p")
MORE = 50  # a translation may be this many pieces longer than its source


class Translator(PieceEncoder):
    """Weights, tokenizer and compiled model; made by `load`.

    `encode` and the other methods of a `PieceEncoder` give the vectors of the encoder, which reads the source;
    `generate(source=[[…]])` and `translate` write with the decoder.

    >>> from bert_elmo_jax import load
    >>> model = load("tests/goldens/transformer_tiny")
    >>> model.forward(source=[[5, 6, 7]], target=[[179, 8]]).logits.shape
    (1, 2, 180)
    """

    def __init__(
        self, config: TransformerConfig, params: Mapping[str, Any], tokenizer: Tokenizer | None, source: str = "weights"
    ):
        super().__init__(FAMILY, config, params, tokenizer, source)

    @functools.cached_property
    def _run_pair(self) -> Callable[..., PairOutput]:
        return compile_pair(self.config)

    @property
    def has_decoder(self) -> bool:
        """True if the weights have the decoder, without which nothing can be translated."""
        return "decoder" in self.params

    def forward(  # type: ignore[override] # two texts instead of one
        self,
        source: Int[AnyArray, "B T"] | Rows,
        source_mask: Int[AnyArray, "B T"] | Rows | None = None,
        target: Int[AnyArray, "B U"] | Rows | None = None,
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
        mask = arguments.to_mask("source_mask", source_mask, tokens.shape)
        read = {"tokens": tokens.astype(np.int32), "segments": None if mask is None else mask.astype(np.int32)}
        return self._run_pair(self.working_params, read, self._target(target, len(tokens)), every=True, maps=True)

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """Return the best translation of each text, with 4 beams and a length penalty of 0.6 by default.

        All options of `generate` are allowed. By default a translation has at most 50 pieces more than the longest
        source, as in Vaswani et al. 2017, and no more than the model has positions.

        >>> from bert_elmo_jax import load
        >>> load("tests/goldens/transformer_tiny").translate(["the river"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: tests/goldens/transformer_tiny has no tokenizer (...): copy one there to encode texts; ...
        """
        return [best.text for best in self.best_translations(texts, **options)]

    def best_translations(
        self, texts: Sequence[str], *, beams: int | None = None, length_penalty: float = 0.6,
        max_new: int | None = None, **options: Any,
    ) -> list[Any]:  # fmt: skip
        """Return what `translate` returns with its pieces and its score, as `generate` does."""
        arguments.check_list(texts)
        texts = list(texts)
        wrong = next((n for n, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(f"text {wrong} is {shorten(texts[wrong])}; translate takes strings")
        self.check_decoder()
        if "n_best" in options:
            raise TypeError("translate returns one text for each source; for n_best= call generate")
        if not texts:
            return []
        if max_new is None:
            longest = max(len(self.tokenizer.encode(text)) for text in texts)
            max_new = min(longest + MORE, self.config.max_positions)
        if beams is None:  # drawing and searching exclude each other
            beams = 1 if any(options.get(name) is not None for name in DRAWS) else BEAMS
        options |= {"beams": beams, "length_penalty": length_penalty, "max_new": max_new}
        return [best for best, *_ in self.generate(texts, **options)]

    def _target(self, target: Int[AnyArray, "B U"] | Rows | None, rows: int) -> dict[str, Any] | None:
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
