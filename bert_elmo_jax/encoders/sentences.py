"""Sentences of words, for encoders that are fed with words: their checks, and batches in a bounded number of shapes."""

import contextlib
import functools
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from bert_elmo_jax.encoders.rows import BadText, Words, lone_surrogate, shorten
from bert_elmo_jax.text.words import split_words

LONG = 512  # tokens; batches of longer sentences have fewer rows, so that memory stays the same


def to_words(text: str | Words, number: int, composed: bool = False) -> Words:
    """Return the words of one sentence of a list, checked; with `composed`, those of a string in NFC."""
    if not isinstance(text, str | list):
        hint = "; write it as a list of words" if isinstance(text, tuple) else ""
        raise TypeError(f"text {number} is {shorten(text)}; expected a list of words, or a string{hint}")
    if isinstance(text, str):
        words = split_words(unicodedata.normalize("NFC", text) if composed else text, "whitespace")
    else:
        words = text
    if not words:
        raise BadText(number, f"has no words: {shorten(text)}")
    check_words(words, functools.partial(BadText, number))
    return words


def check_words(words: Words, error: Callable[[str], ValueError]) -> None:
    """Raise unless all are words; the first lines are a fast check of the usual case."""
    with contextlib.suppress(TypeError, ValueError):
        if all(words):
            "".join(words).encode()
            return
    for place, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(str(error(f"holds {shorten(word)} as word {place}; expected a string")))
        if not word:
            raise error(f"holds an empty word, word {place} of {len(words)}: remove it")
    raise error(lone_surrogate(words) or f"cannot be encoded: {shorten(words)}")


def batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Yield batches of row numbers, the longest rows first, so that rows of a batch have similar lengths.

    >>> list(batches([3, 9, 5], 2))
    [[1, 2], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    at = 0
    while at < len(order):
        size = max_rows(lengths[order[at]], batch_size)
        yield order[at : at + size]
        at += size


def width_for(length: int) -> int:
    """Return the padded length of a row: a power of two, or three quarters of one."""
    power = max(8, 1 << (length - 1).bit_length())
    return power * 3 // 4 if power > 8 and length <= power * 3 // 4 else power


def max_rows(length: int, batch_size: int) -> int:
    """Return the most rows of a batch whose longest row has this length."""
    return max(1, min(batch_size, batch_size * LONG // width_for(length)))
