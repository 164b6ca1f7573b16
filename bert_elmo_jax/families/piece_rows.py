"""Rows of texts for an encoder fed with pieces, which may lack the embedding of its tokenizer's mask."""

import logging
from typing import Any

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.encoders.rows import BadText, Row, Text, to_row
from bert_elmo_jax.text import Tokenizer


def check_sizes(tokenizer: Tokenizer, vocab_size: int, source: str) -> None:
    """Raise if a tokenizer has more pieces than the model embeddings; log it if only its mask has none.

    Released BARTs that summarise have no embedding for `<mask>`, the last piece of their tokenizer.
    """
    if tokenizer.vocab_size <= vocab_size:
        return
    mask, frame = tokenizer.mask_id, (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    if tokenizer.vocab_size > vocab_size + 1 or mask != vocab_size or mask in frame:
        raise ValueError(
            f"{source}: the tokenizer has {tokenizer.vocab_size} pieces, the model embeddings for "
            f"{vocab_size}; they do not belong together"
        )
    logging.getLogger(__name__).warning(
        "%s has no embedding for %s, the last piece of its tokenizer; a text with it is refused",
        source, tokenizer.tokens[mask],
    )  # fmt: skip


def read_row(encoder: Any, text: Text, number: int, **fit: Any) -> Row:
    """Return the row of one text of a list, see `to_row`; raise on a piece without an embedding."""
    row = to_row(text, number, tokenizer=encoder.tokenizer, **fit)
    if problem := describe_missing(encoder.tokenizer, encoder.config.vocab_size, row.encoding.ids, encoder.source):
        raise BadText(number, problem)
    return row


def describe_missing(tokenizer: Tokenizer, vocab_size: int, ids: Int[np.ndarray, "pieces"], source: str) -> str | None:
    """Return the message about a piece of a text for which a model has no embedding; None without one."""
    if tokenizer.vocab_size <= vocab_size or (largest := int(ids.max(initial=0))) < vocab_size:
        return None
    return (
        f"holds {tokenizer.tokens[largest]} (id {largest}), but the embeddings of {source} are for the ids 0 to "
        f"{vocab_size - 1}: remove it from the text"
    )
