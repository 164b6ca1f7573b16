"""The likeliest pieces for the gaps of a text: the method `fill_mask` of an encoder fed with pieces."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.data.rows.packed_rows import plan_padded
from bert_elmo_jax.encoders import arguments
from bert_elmo_jax.encoders.layout import Windows
from bert_elmo_jax.encoders.rows import Text
from bert_elmo_jax.families.piece_rows import read_row


class Guess(NamedTuple):
    """A candidate for a gap: the number of the gap in the text, the piece, its probability."""

    mask: int
    piece: str
    probability: float


def fill_mask(encoder: Any, text: Text, top: int = 5) -> list[Guess]:
    """Return the likeliest pieces for each [MASK] of a text, best first.

    >>> from bert_elmo_jax import load
    >>> [guess.mask for guess in load("tests/goldens/bert_tiny").fill_mask("[MASK] [MASK]", top=2)]
    [0, 0, 1, 1]
    """
    tokenizer, size = encoder.tokenizer, encoder.config.max_positions
    top = arguments.check_whole("top", top, 1, tokenizer.vocab_size, "the size of the vocabulary")
    row = read_row(encoder, text, 0, size=size, overflow="raise", stride=None)
    places = np.flatnonzero(row.encoding.ids == tokenizer.mask_id)
    if not len(places):
        raise ValueError(f"{text!r} has no {tokenizer.tokens[tokenizer.mask_id]} to fill")
    windows = Windows([row])
    [batch] = plan_padded(windows.lengths, 1, size)
    mask_logits = encoder.mask_logits(windows.lay_out(batch, encoder.config.pad_id))
    logits = np.asarray(mask_logits[0, places])
    # The embeddings of a model may have more rows than there are pieces; they have probabilities too, but no name.
    chances = np.asarray(jax.nn.softmax(jnp.asarray(logits), axis=-1))[:, : tokenizer.vocab_size]
    best = np.argsort(-chances, axis=-1, kind="stable")[:, :top]
    return [Guess(gap, tokenizer.tokens[i], float(chances[gap, i])) for gap, order in enumerate(best) for i in order]
