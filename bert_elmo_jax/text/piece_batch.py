"""Texts as the arrays that a model of pieces reads: one text in a row, or packed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int32

if TYPE_CHECKING:
    from bert_elmo_jax.text.tokenizer import Tokenizer

Ids = Int32[np.ndarray, "_"]
Text = str | Sequence[str] | tuple[Any, Any]  # a text, its words, or a pair of texts


def batch_texts(
    tokenizer: "Tokenizer",
    texts: Sequence[Text],
    *,
    length: int | None = None,
    packed: bool = False,
    rows: int | None = None,
) -> dict[str, np.ndarray]:
    """Return the arrays of texts; see `Tokenizer.batch`."""
    if isinstance(texts, str | Mapping) or not len(texts):
        raise ValueError(f"texts is {texts!r:.60}; expected a list of texts, and at least one")
    if packed and length is None:
        raise ValueError("packed=True needs length=…, the width of a row")
    if rows is not None and not packed:
        raise ValueError(f"rows={rows} is for packed=True: without it, every text has a row")
    least = max(tokenizer.frame.count(pair) for pair in (False, True)) + 2
    if length is not None and length < least:
        raise ValueError(f"length={length}: use {least} or more, special pieces included")
    read = [text_ids(tokenizer, text, number, length) for number, text in enumerate(texts)]
    sizes = [len(ids) for ids, _ in read]
    most = tokenizer.max_positions
    if most is not None and (max(sizes) > most or ((length or 0) > most and not packed)):
        size = f"text {int(np.argmax(sizes))} has {max(sizes)} pieces" if max(sizes) > most else f"length={length}"
        raise ValueError(f"{size}, and the model has {most} positions: give length={most} to cut texts")
    width = length or max(sizes)
    places = _pack(sizes, width) if packed else [(number, 0) for number in range(len(read))]
    height = places[-1][0] + 1
    if rows is not None and height > rows:
        raise ValueError(
            f"{len(texts)} texts of {sum(sizes):,} pieces fill {height} rows of {width}, and rows={rows}: give fewer "
            "texts, or more rows"
        )
    shape = (rows or height, width)
    tokens = np.full(shape, tokenizer.pad_id, np.int32)
    types, positions, segments = (np.zeros(shape, np.int32) for _ in range(3))
    firsts: list[list[int]] = [[] for _ in range(shape[0])]
    for (ids, kinds), (row, start) in zip(read, places):
        inside = slice(start, start + len(ids))
        firsts[row].append(start)
        tokens[row, inside], types[row, inside] = ids, kinds
        positions[row, inside], segments[row, inside] = np.arange(len(ids)), len(firsts[row])
    arrays = {"tokens": tokens, "types": types, "positions": positions, "segments": segments}
    if packed:
        most = max(map(len, firsts))
        arrays["nsp_positions"] = np.array([row + [0] * (most - len(row)) for row in firsts], np.int32)
    return arrays


def text_ids(tokenizer: "Tokenizer", text: Text, number: int, length: int | None) -> tuple[Ids, Ids]:
    """Return ids and types of a text or a pair with its special pieces, cut to `length`."""
    first, second = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
    encodings = []
    for part in (first, second) if second is not None else (first,):
        if isinstance(part, str):
            encodings.append(tokenizer.encode(part, specials=False).ids)
        elif isinstance(part, list) and all(isinstance(word, str) for word in part):
            encodings.append(tokenizer.encode_words(part, specials=False).ids)
        else:
            raise TypeError(f"text {number} is {text!r:.60}; expected a string, a list of words, or a pair (tuple)")
        if not len(encodings[-1]):
            raise ValueError(f"text {number} is empty, or has nothing the tokenizer knows: {text!r:.60}")
    return frame_ids(tokenizer, encodings[0], None if second is None else encodings[1], length)


def frame_ids(
    tokenizer: "Tokenizer", first: Ids, second: Ids | None, length: int | None, odd_to_longer: bool = False
) -> tuple[Ids, Ids]:
    """Return ids and types between special pieces; the longer text loses pieces until both fit."""
    frame = tokenizer.frame
    if length is None:
        return frame.join(first, second)
    capacity = length - frame.count(second is not None)
    if second is None:
        return frame.join(_cut(tokenizer, first, capacity))
    keep_first, keep_second = keep_of_pair(len(first), len(second), capacity, odd_to_longer)
    return frame.join(_cut(tokenizer, first, keep_first), _cut(tokenizer, second, keep_second))


def _cut(tokenizer: "Tokenizer", ids: Ids, size: int) -> Ids:
    """Return at most `size` pieces of a text: the first ones, or the last ones if the tokenizer cuts the start."""
    return ids[max(0, len(ids) - size) :] if tokenizer.cuts_start else ids[:size]


def keep_of_pair(first: int, second: int, capacity: int, odd_to_longer: bool = False) -> tuple[int, int]:
    """Return how many pieces of each text remain if the longer one (or else the second) loses pieces until both fit.

    Of two long texts, the first keeps one more if the capacity is odd; with `odd_to_longer` the longer one does, or the
    second of equal ones, as in the library `tokenizers`.

    >>> keep_of_pair(10, 3, 8), keep_of_pair(9, 9, 7), keep_of_pair(9, 9, 7, odd_to_longer=True)
    ((5, 3), (4, 3), (3, 4))
    """
    if odd_to_longer and first <= second:
        return keep_of_pair(second, first, capacity)[::-1]
    second_left = min(second, max(capacity // 2, capacity - first))
    return min(first, capacity - second_left), second_left


def _pack(sizes: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Return the row and the first position of each text, in order: a text that does not fit begins the next row."""
    places, row, filled = [], 0, 0
    for size in sizes:
        if filled + size > width:
            row, filled = row + 1, 0
        places.append((row, filled))
        filled += size
    return places
