"""Composition of text (NFC) with places in the original text.

The libraries compose text, too, but their offsets cover only the first part of a composed character.
"""

import unicodedata
from collections.abc import Sequence


def compose(text: str) -> tuple[str, list[tuple[int, int]]]:
    r"""Return the composed text (NFC), and for each of its characters the (start, end) in the original.

    >>> compose("\u1112\u1161\u11ab 글")
    ('한 글', [(0, 3), (3, 4), (4, 5)])
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        # A part ends before a character that is no mark and does not compose with the previous ones.
        if end < len(text) and not _starts_part(text[start:end], text[end]):
            continue
        part = unicodedata.normalize("NFC", text[start:end])
        parts.append(part)
        if part == text[start:end]:
            spans += [(place, place + 1) for place in range(start, end)]
        else:
            # Marks that do not compose may be reordered, so each character gets the span of the full part.
            spans += [(start, end)] * len(part)
        start = end
    return "".join(parts), spans


def find_original(spans: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Return the characters of the original text behind characters of the composed one.

    >>> find_original([(0, 3), (3, 4), (4, 5)], 0, 2)
    (0, 4)
    """
    if start < end:
        return spans[start][0], spans[end - 1][1]
    point = spans[start][0] if start < len(spans) else spans[-1][1] if spans else 0
    return point, point


def _starts_part(before: str, character: str) -> bool:
    if character.isascii():
        return True
    if unicodedata.combining(character):
        return False
    joined = unicodedata.normalize("NFC", before + character)
    return joined == unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
