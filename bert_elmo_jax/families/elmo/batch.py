"""Turn sentences and raw ids into batches of distinct words, in a bounded number of shapes, with their checks."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Int, Int32

from bert_elmo_jax.data.rows.widths import height_for
from bert_elmo_jax.encoders.arguments import check_range, to_ids
from bert_elmo_jax.encoders.rows import Words, shorten
from bert_elmo_jax.encoders.sentences import max_rows, width_for
from bert_elmo_jax.text.characters import NUM_CHARACTERS, PAD_CHARACTER

Boundaries = Literal["strip", "keep", "given"]

BEGIN, END = 0, 1  # marks of a sentence: the first two rows of every table of distinct words
CHARACTERS = (16, 24, 32)  # widths that words are padded to; longer words have the model's width
PIECES = (256, 128, 64, 32, 16, 8)  # batch sizes of the character CNN, in words


def number_words(sentences: Sequence[Words]) -> tuple[Words, list[Int32[np.ndarray, "T"]]]:
    """Return the distinct words, and each sentence as rows of a table of begin, end, and these words."""
    numbers: dict[str, int] = {}
    rows = []
    for words in sentences:
        places = [numbers.setdefault(word, len(numbers) + 2) for word in words]
        rows.append(np.array([BEGIN, *places, END], np.int32))
    return list(numbers), rows


def pad(
    rows: Sequence[Int[np.ndarray, "_"]], batch_size: int, least: int = 1
) -> tuple[Int32[np.ndarray, "B T"], Int32[np.ndarray, "B"]]:
    """Return rows padded to a known height (at least `least`) and width, and their lengths (0 for added rows)."""
    longest = max(map(len, rows))
    height, width = max(least, height_for(len(rows), max_rows(longest, batch_size))), width_for(longest)
    words, lengths = np.zeros((height, width), np.int32), np.zeros(height, np.int32)
    for n, row in enumerate(rows):
        words[n, : len(row)] = row
        lengths[n] = len(row)
    return words, lengths


def used_characters(characters: Int[np.ndarray, "N C"]) -> Int[np.ndarray, "N"]:
    """Return the number of characters of each word before the padding at its end."""
    size = characters.shape[1]
    used = size - np.argmax((characters != PAD_CHARACTER)[:, ::-1], axis=1)
    # The model pads a cut word by its last character, which would be wrong after a 0.
    return np.where(np.take_along_axis(characters, used[:, None] - 1, axis=1)[:, 0] == 0, size, used)


def pieces(characters: Int[np.ndarray, "N C"]) -> Iterator[tuple[Int[np.ndarray, "n"], Int32[np.ndarray, "U c"]]]:
    """Yield (numbers of words, their characters) for the character CNN, in few shapes, short words first."""
    used = used_characters(characters)
    order = np.argsort(used, kind="stable")
    limit = characters.shape[1]
    at = 0
    while at < len(order):
        left = len(order) - at
        # The rest goes into one size that it nearly fills, or else as much as fills the largest size.
        size = next((size for size in reversed(PIECES) if size * 3 // 4 < left <= size), None)
        size = size or next((size for size in PIECES if size <= left), PIECES[-1])
        which = order[at : at + size]
        at += size
        longest = int(used[which[-1]])
        width = min(next((width for width in CHARACTERS if width >= longest), limit), limit)
        piece = np.full((size, width), PAD_CHARACTER, np.int32)
        piece[: len(which)] = characters[which, :width]
        yield which, piece


def distinct_words(
    characters: Any, max_characters: int
) -> tuple[Int32[np.ndarray, "B T"], Int[np.ndarray, "B"], Int32[np.ndarray, "N C"]]:
    """Return rows as places in a table of distinct words (after the two marks), their lengths, and these words.

    >>> places, lengths, words = distinct_words([[[259, 98, 260], [259, 99, 260], [259, 98, 260]]], 3)
    >>> (places.tolist(), lengths.tolist(), len(words))
    ([[2, 3, 2]], [3], 2)
    """
    ids = to_ids("characters", characters, axes=("batch", "words", "characters"))
    if ids.shape[2] != max_characters:
        raise ValueError(
            f"characters has {ids.shape[2]} per word, this model reads {max_characters}: pad words with 261, or cut "
            f"them to {max_characters - 2} bytes between their marks"
        )
    meaning = "1 to 256 are bytes + 1, 257 to 261 marks and padding, 0 is for padding words"
    check_range("character id", ids, 0, NUM_CHARACTERS - 1, meaning)
    real = (ids > 0).any(axis=2)
    lengths = real.sum(axis=1)
    holes = ~real & (np.arange(ids.shape[1]) < lengths[:, None])
    if holes.any():
        row, column = np.argwhere(holes)[0]
        raise ValueError(
            f"characters has a padding word (all 0) at row {row}, column {column}, before other words of its row: "
            "padding goes after them"
        )
    words, numbers = np.unique(ids[real].astype(np.int32), axis=0, return_inverse=True)
    places = np.zeros(real.shape, np.int32)
    places[real] = numbers.reshape(-1) + 2
    return places, lengths, words


def check_boundaries(boundaries: Any, marks: tuple[int, int] | None, source: str) -> Boundaries:
    """Return the treatment of the marks of begin and end, or its default."""
    if boundaries is None:
        return "given" if marks is None else "strip"
    if boundaries not in ("strip", "keep", "given"):
        raise ValueError(f"boundaries={shorten(boundaries)} is not known; use 'strip', 'keep' or 'given'")
    if marks is None and boundaries != "given":
        raise ValueError(
            f"boundaries={boundaries!r} needs the ids of <S> and </S>, and {source} has no vocabulary with them: put "
            "them into the rows, and use boundaries='given'"
        )
    return boundaries
