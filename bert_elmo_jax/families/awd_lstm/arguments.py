"""Argument checks of an AWD-LSTM's encoder: rows of ids, and states."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from bert_elmo_jax.encoders.arguments import check_lengths, check_range, to_ids
from bert_elmo_jax.encoders.rows import shorten
from bert_elmo_jax.families.awd_lstm.model import State


def check_words(words: Any, lengths: Any, vocab_size: int) -> tuple[Int[np.ndarray, "B T"], Int[np.ndarray, "B"]]:
    """Return word ids as an array, with zeros behind the end of each row, and the number of real ones in each row.

    >>> check_words([[5, 6, 99]], [2], 10)[0].tolist()
    [[5, 6, 0]]
    """
    ids = to_ids("words", words, axes=("batch", "words"))
    sizes = check_lengths(lengths, *ids.shape)
    ids = np.where(np.arange(ids.shape[1]) < sizes[:, None], ids, 0)
    check_range("word id", ids, 0, vocab_size - 1, f"the model has embeddings for {vocab_size} words")
    return ids.astype(np.int32), sizes


def check_state(state: Any, like: State) -> State:
    """Return the state as arrays on the host; raise unless it is like another."""
    rows = like.cell[0].shape[0]
    if not isinstance(state, State):
        raise TypeError(f"state is {shorten(state)}; expected the result of zero_state({rows}) or of an earlier call")
    shapes, expected = ([np.shape(part) for part in (*one.cell, *one.hidden)] for one in (state, like))
    if [shape[1:] for shape in shapes] != [shape[1:] for shape in expected]:
        raise ValueError(f"state belongs to another model: its shapes are {shapes}, expected {expected}")
    if shapes != expected:
        raise ValueError(
            f"state has {shapes[0][0]} rows, and there are {rows}: use zero_state({rows}), or a state of as many rows"
        )
    arrays = jax.tree.map(lambda part: np.asarray(part, np.float32), state)
    if not all(np.isfinite(part).all() for part in (*arrays.cell, *arrays.hidden)):
        raise ValueError(f"state holds NaN or infinity: start again with zero_state({rows})")
    return arrays
