"""Argument checks for encoders."""

import operator
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Int

from bert_elmo_jax.encoders.rows import Overflow, shorten
from bert_elmo_jax.nn.layers import layer_numbers

Layers = Literal["all"] | Sequence[int] | None


def check_stream(texts: Any) -> None:
    """Raise unless the argument is an iterable of texts."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"a list of texts is expected, a single string was given: write [{shorten(texts)}]")
    if isinstance(texts, tuple):
        raise TypeError(
            "a list of texts is expected, a tuple was given: write list(texts), or for a pair [(first, second)]"
        )
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"a list of texts is expected, {shorten(texts)} was given: write [text, …]")


def check_list(texts: Any) -> None:
    """Raise unless the argument is a list of texts, which may be empty."""
    check_stream(texts)
    if not isinstance(texts, Sized):
        kind = type(texts).__name__
        remedy = "write list(texts), or use encode_batches of an encoder"
        raise TypeError(f"a list of texts is expected, a {kind} was given: {remedy}")


def check_whole(name: str, value: Any, low: int, high: int | None = None, meaning: str = "") -> int:
    """Return the value as an int; raise unless it is a whole number within the bounds."""
    bounds = f"at least {low}" if high is None else f"{low} to {high}"
    text = f"{name}={shorten(value)}: use a whole number, {bounds}{meaning and f', {meaning}'}"
    if isinstance(value, bool | np.bool_):
        raise TypeError(text)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(text) from None
    if number < low or (high is not None and number > high):
        raise ValueError(text)
    return number


def check_layers(layers: Any, num_layers: int) -> tuple[int, ...] | None:
    """Return the numbers of the layers to return; None for none."""
    if layers is None:
        return None
    if isinstance(layers, str):
        return tuple(layer_numbers(layers, num_layers))
    if not isinstance(layers, Iterable):
        raise TypeError(f"layers={shorten(layers)} is not a list: write layers=[{shorten(layers)}], or 'all'")
    numbers = list(layers)
    for layer in numbers:
        if not isinstance(layer, int | np.integer) or isinstance(layer, bool):
            raise TypeError(f"layers holds {shorten(layer)}; expected whole numbers such as [0, -1], or 'all' alone")
    if not numbers:
        raise ValueError("layers=[] asks for no layer: leave layers out for the last one alone, or name some")
    return tuple(layer_numbers([int(layer) for layer in numbers], num_layers))


def check_fit(overflow: Any, stride: Any, max_length: Any, limit: int) -> tuple[int, Overflow, int | None]:
    """Return the largest window in pieces, what to do with longer texts, and the stride of windows if given."""
    if overflow not in ("raise", "truncate", "windows"):
        raise ValueError(f"overflow={shorten(overflow)} is not known; use 'raise', 'truncate' or 'windows'")
    size = limit
    if max_length is not None:
        size = check_whole("max_length", max_length, 3, limit, "the positions of this model")
    if stride is not None:
        stride = check_whole("stride", stride, 1, size - 2, "the pieces of a window without the special ones")
    return size, overflow, stride


def to_ids(
    name: str, values: Any, shape: tuple[int, ...] | None = None, axes: Sequence[str] = ("batch", "pieces")
) -> Int[np.ndarray, "..."]:
    """Return ids as a 64-bit array, so that none is truncated; types and masks must have the tokens' `shape`."""
    expected = f"[{', '.join(axes)}]"
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths: pad them, and mark the real ones") from None
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == bool):
        content = "None" if values is None else str(array.dtype) if array.dtype != object else shorten(values)
        raise TypeError(f"{name} holds {content}; expected whole numbers, {expected}")
    if shape is None and (array.ndim != len(axes) or 0 in array.shape):
        raise ValueError(f"{name} has shape {array.shape}; expected {expected}, and at least one of each")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {expected} as tokens, which have {shape}")
    return array.astype(np.int64)


def to_mask(name: str, values: Any, shape: tuple[int, ...]) -> Int[np.ndarray, "..."] | None:
    """Return a mask of this shape, or None for None; raise if it holds other numbers than 0 and 1."""
    mask = None if values is None else to_ids(name, values, shape)
    if mask is not None and not np.isin(mask, (0, 1)).all():
        raise ValueError(f"{name} holds other numbers than 0 (padding) and 1 (real); packed rows give segments")
    return mask


def check_lengths(lengths: Any, rows: int, width: int) -> Int[np.ndarray, " B"]:
    """Return the number of words of each row, by default all; raise unless each is a whole number up to `width`.

    >>> check_lengths(None, 2, 3).tolist(), check_lengths([3, 0], 2, 3).tolist()
    ([3, 3], [3, 0])
    """
    if lengths is None:
        return np.full(rows, width, np.int32)
    sizes = np.asarray(lengths)
    if sizes.shape != (rows,) or not np.issubdtype(sizes.dtype, np.integer):
        raise ValueError(f"lengths is {shorten(lengths)}; expected {rows} whole numbers, one per row")
    if ((sizes < 0) | (sizes > width)).any():
        raise ValueError(f"lengths holds {sizes.min()} to {sizes.max()}; each is 0 to {width}, the words of a row")
    return sizes.astype(np.int32)


def check_range(name: str, ids: Int[np.ndarray, "..."], low: int, high: int, reason: str) -> None:
    """Raise on an id outside low to high, and name the first."""
    outside = (ids < low) | (ids > high)
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), ids.shape)
        where = ", ".join(f"{axis} {n}" for axis, n in zip(("row", "column", "character"), place))
        raise ValueError(f"{name} {ids[place]} at {where} is outside {low} to {high}; {reason}")


def check_word_ids(words: Any, lengths: Any, vocab_size: int) -> tuple[Int[np.ndarray, "B T"], Int[np.ndarray, "B"]]:
    """Return word ids as an array, with zeros behind the end of each row, and the number of real ones in each row.

    >>> check_word_ids([[5, 6, 99]], [2], 10)[0].tolist()
    [[5, 6, 0]]
    """
    ids = to_ids("words", words, axes=("batch", "words"))
    sizes = check_lengths(lengths, *ids.shape)
    ids = np.where(np.arange(ids.shape[1]) < sizes[:, None], ids, 0)
    check_range("word id", ids, 0, vocab_size - 1, f"the model has embeddings for {vocab_size} words")
    return ids.astype(np.int32), sizes


def check_state(state: Any, like: Any, axis: int) -> Any:
    """Return a recurrent state as arrays on the host; raise unless it is like another, with as many rows on `axis`."""

    def shapes(tree: Any) -> list[tuple[int, ...]]:
        return [np.shape(part) for part in jax.tree.leaves(tree)]

    def without_rows(tree: Any) -> list[tuple[int, ...]]:
        return [shape[:axis] + shape[axis + 1 :] for shape in shapes(tree)]

    rows = shapes(like)[0][axis]
    if not isinstance(state, type(like)):
        raise TypeError(f"state is {shorten(state)}; expected the result of zero_state({rows}) or of an earlier call")
    if without_rows(state) != without_rows(like):
        raise ValueError(f"state belongs to another model: its shapes are {shapes(state)}, expected {shapes(like)}")
    if shapes(state) != shapes(like):
        counts = " and ".join(str(count) for count in dict.fromkeys(shape[axis] for shape in shapes(state)))
        raise ValueError(
            f"state has {counts} rows, and there are {rows} sentences: use zero_state({rows}), or a state of as many "
            "rows"
        )
    arrays = jax.tree.map(lambda part: np.asarray(part, np.float32), state)
    if not all(np.isfinite(part).all() for part in jax.tree.leaves(arrays)):
        raise ValueError(f"state holds NaN or infinity: start again with zero_state({rows})")
    return arrays


def check_batch(
    config: Any,
    tokens: Int[np.ndarray, "B T"],
    types: Int[np.ndarray, "..."] | None = None,
    positions: Int[np.ndarray, "..."] | None = None,
) -> None:
    """Raise if ids do not fit the sizes of a model; on the host, because compiled code cannot look at values."""
    limited = getattr(config, "limits_rows", True)  # False: no position has an embedding
    if limited and positions is None and tokens.shape[1] > config.max_positions:
        raise ValueError(too_long(tokens.shape[1], config.max_positions))
    fields = [
        ("token id", tokens, config.vocab_size, "the vocabulary", "vocab_size"),
        ("type", types, getattr(config, "type_vocab_size", 2) or 2, "the model's types", "type_vocab_size"),
        ("position", positions if limited else None, config.max_positions, "the model's positions", "max_positions"),
    ]
    for label, ids, size, table, field in fields:
        if ids is None:
            continue
        if ids.shape != tokens.shape:
            raise ValueError(f"the batch's tokens have the shape {tokens.shape} but its {label}s {ids.shape}")
        outside = np.argwhere((ids < 0) | (ids >= size))
        if len(outside):
            row, column = outside[0]
            raise ValueError(
                f"{label} {ids[row, column]} at row {row}, column {column} is outside {table}, "
                f"whose {'ids' if field == 'vocab_size' else 'numbers'} are 0 to {size - 1} ({field} {size})"
            )


def too_long(tokens: int, max_positions: int) -> str:
    """Return the message for rows with more tokens than the model has positions."""
    return (
        f"rows of {tokens} tokens were given to a model with {max_positions} positions: cut them to {max_positions} "
        "(packed rows may be longer if they give their positions, which start again with each sequence)"
    )
