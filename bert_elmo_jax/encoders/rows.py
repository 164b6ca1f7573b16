"""Convert texts to rows that fit a model: special pieces, truncation, windows."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from bert_elmo_jax.text import Encoding, Tokenizer

Words = list[str]
Text = str | Words | tuple[str, str] | tuple[Words, Words]
Overflow = Literal["raise", "truncate", "windows"]

SURROGATE = re.compile("[\\ud800-\\udfff]")


class BadText(ValueError):
    """A text of a list that cannot be encoded; `number` is its place in the list.

    >>> BadText(3, "is empty")
    BadText('text 3 is empty')
    """

    def __init__(self, number: int, problem: str):
        super().__init__(f"text {number} {problem}")
        self.number = number


@dataclass(frozen=True)
class Row:
    """The pieces of a text, in one window or several.

    Every window begins with the first `prefix` pieces and ends with the last `suffix`. `windows` are (first, end) among
    the pieces between them. A text that fits has one window.
    """

    encoding: Encoding
    prefix: int
    windows: tuple[tuple[int, int], ...]
    words: tuple[int, int]  # numbers of words of the two texts, including words without pieces
    suffix: int = 1

    def __len__(self) -> int:
        return len(self.encoding)

    def length(self, window: int) -> int:
        """Return the number of pieces of a window, special ones included."""
        start, end = self.windows[window]
        return self.prefix + end - start + self.suffix

    def columns(self, window: int) -> Int[np.ndarray, "columns"]:
        """Return the pieces of a window, as places in the text."""
        start, end = self.windows[window]
        body = self.prefix + np.arange(start, end)
        return np.concatenate([np.arange(self.prefix), body, np.arange(len(self) - self.suffix, len(self))])

    def take(self, values: Int[np.ndarray, "pieces"], window: int) -> Int[np.ndarray, "columns"]:
        """Return the values of a window's pieces."""
        return values if len(self.windows) == 1 else values[self.columns(window)]

    def owners(self) -> Int[np.ndarray, "pieces"]:
        """Return the window that gives the vector of each piece: where the smaller of its two contexts is largest."""
        starts, ends = np.array(self.windows).T
        # Windows have one size, so a piece has more context in the window with the nearer centre. Two windows meet
        # halfway between their centres (doubled here, to keep whole numbers), and a tie goes to the first.
        centres = starts + ends - 1
        place = np.arange(len(self) - self.prefix - self.suffix)
        best = np.searchsorted(centres[:-1] + centres[1:], 4 * place, side="left")
        return np.concatenate([np.zeros(self.prefix, np.int64), best, np.full(self.suffix, len(self.windows) - 1)])


def to_row(text: Text, number: int, tokenizer: Tokenizer, size: int, overflow: Overflow, stride: int | None) -> Row:
    """Return the row of one text of a list, with at most `size` pieces per window."""
    first, second = _parts(text, number)
    encoding = _encode(tokenizer, first, second, number)
    words = (_count_words(first, encoding, 0), _count_words(second, encoding, 1))
    if (encoding.word_ids < 0).all():
        raise BadText(number, f"is empty, or has nothing the tokenizer knows: {shorten(text)}")
    if overflow == "truncate" and len(encoding) > size:
        encoding = _truncate(encoding, size, number, tokenizer.cuts_start)
    frame = tokenizer.frame
    prefix, suffix = len(frame.before) if encoding.second is None else encoding.second, len(frame.after)
    body, window_size = len(encoding) - prefix - suffix, size - prefix - suffix
    if body <= window_size:
        return Row(encoding, prefix, ((0, body),), words, suffix)
    if overflow == "raise":
        raise BadText(
            number,
            f"has {len(encoding)} pieces, the model takes {size}: {shorten(text)}; "
            'use overflow="truncate" to cut it, or overflow="windows" to encode it in overlapping windows',
        )
    if window_size < 2 and second is None:
        raise BadText(number, f"has {body} pieces, and a window of {size} has room for one; use max_length=4 or more")
    if window_size < 2:
        first_pieces = int((encoding.word_ids[:prefix] >= 0).sum())
        raise BadText(
            number,
            f"has a first part of {first_pieces} pieces, which leaves no window for the second among {size}: "
            f'{shorten(text)}; give the long part second, or use overflow="truncate"',
        )
    step = stride or max(1, window_size // 2)
    if not 0 < step <= window_size:
        raise BadText(
            number, f"gets gaps from stride={stride}: a window holds {window_size} pieces of it; use 1 to {window_size}"
        )
    starts = [*range(0, body - window_size, step), body - window_size]
    return Row(encoding, prefix, tuple((start, start + window_size) for start in starts), words, suffix)


def _parts(text: Text, number: int) -> tuple[str | Words, str | Words | None]:
    if isinstance(text, str) or (isinstance(text, list) and all(isinstance(word, str) for word in text)):
        return text, None
    if isinstance(text, tuple) and len(text) == 2 and all(_parts(part, number)[1] is None for part in text):
        if type(text[0]) is type(text[1]):
            return text
        raise TypeError(f"text {number} pairs a string with a list of words; give both as strings, or both as words")
    raise TypeError(
        f"text {number} is {shorten(text)}; expected a string, a list of words, or a pair (tuple) of two of these"
    )


def _encode(tokenizer: Tokenizer, first: str | Words, second: str | Words | None, number: int) -> Encoding:
    try:
        if isinstance(first, str):
            assert second is None or isinstance(second, str)
            return tokenizer.encode(first, second)
        assert second is None or isinstance(second, list)
        for words in filter(None, (first, second)):
            if "" in words:
                raise BadText(number, f"holds an empty word, word {words.index('')} of {len(words)}: remove it")
        return tokenizer.encode_words(first, second)
    except BadText:
        raise
    except ValueError as error:
        # The tokenizer does not know the number of the text in the list.
        for part in (first, second or ""):
            if problem := lone_surrogate(part):
                raise BadText(number, problem) from None
        raise BadText(number, f"cannot be tokenised: {shorten(first)}: {error}") from error


def _count_words(part: str | Words | None, encoding: Encoding, kind: int) -> int:
    listed = len(part) if isinstance(part, list) else 0
    return listed or int(encoding.word_ids[encoding.texts == kind].max(initial=-1)) + 1


def _truncate(encoding: Encoding, size: int, number: int, cuts_start: bool) -> Encoding:
    """Cut the end (or the start) of the longer text until both fit, as the original does."""
    pair = encoding.second is not None
    added, texts = encoding.word_ids < 0, encoding.texts
    first, second = (int((~added & (texts == text)).sum()) for text in (0, 1))
    space = size - int(added.sum())
    if space < 1 + pair:
        least = size - space + 2
        raise BadText(
            number, f"is a pair, and max_length={size} has no room for a piece of each part; use at least {least}"
        )
    # The longer text loses one piece at a time, the second on a tie, so the shorter keeps up to half of the room.
    keep_second = min(second, max(space // 2, space - first)) if pair else 0
    keep_first = min(first, space - keep_second)
    place = np.cumsum(~added) - 1 - first * texts  # of each piece in its text
    keep, count = (np.where(texts == 0, *sizes) for sizes in ((keep_first, keep_second), (first, second)))
    remaining = np.flatnonzero(added | (place >= count - keep if cuts_start else place < keep))
    e = encoding
    tokens = tuple(e.tokens[i] for i in remaining)
    cut = None if e.second is None else e.second - (first - keep_first)
    return Encoding(e.ids[remaining], e.types[remaining], e.offsets[remaining], e.word_ids[remaining], tokens, cut)


def lone_surrogate(text: str | Words) -> str | None:
    """Return the message about half of a character in a text; None if there is none."""
    for word, unit in enumerate([text] if isinstance(text, str) else text):
        if match := SURROGATE.search(unit):
            where = f"character {match.start()}" + (f" of word {word}" if isinstance(text, list) else "")
            return (
                f"holds a lone surrogate, U+{ord(match[0]):04X} at {where}: half of a character, which no encoding can "
                "write; decode its source with errors='replace', or remove it"
            )
    return None


def shorten(text: object) -> str:
    """Return a value as messages show it, in at most 60 characters."""
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
