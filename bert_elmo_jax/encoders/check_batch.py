"""Checks of ids against the sizes of a model, on the host, because compiled code cannot look at values."""

from typing import Any

import numpy as np
from jaxtyping import Int


def check_batch(
    config: Any,
    tokens: Int[np.ndarray, "B T"],
    types: Int[np.ndarray, "..."] | None = None,
    positions: Int[np.ndarray, "..."] | None = None,
) -> None:
    """Raise if a batch does not fit the model."""
    if positions is None and tokens.shape[1] > config.max_positions:
        raise ValueError(too_long(tokens.shape[1], config.max_positions))
    fields = [
        ("token id", tokens, config.vocab_size, "the vocabulary", "vocab_size"),
        ("type", types, getattr(config, "type_vocab_size", 2), "the model's types", "type_vocab_size"),
        ("position", positions, config.max_positions, "the model's positions", "max_positions"),
    ]
    for what, ids, size, table, field in fields:
        if ids is None:
            continue
        if ids.shape != tokens.shape:
            raise ValueError(f"the batch's tokens have the shape {tokens.shape} but its {what}s {ids.shape}")
        outside = np.argwhere((ids < 0) | (ids >= size))
        if len(outside):
            row, column = outside[0]
            raise ValueError(
                f"{what} {ids[row, column]} at row {row}, column {column} is outside {table}, "
                f"whose {'ids' if field == 'vocab_size' else 'numbers'} are 0 to {size - 1} ({field} {size})"
            )


def too_long(tokens: int, max_positions: int) -> str:
    """Return the message for rows with more tokens than the model has positions."""
    return (
        f"rows of {tokens} tokens were given to a model with {max_positions} positions: cut them to {max_positions} "
        "(packed rows may be longer if they give their positions, which start again with each sequence)"
    )
