"""Composing text (NFC) without losing the way back to the characters it was composed from.

The libraries compose too, but what they then give as the place of a composed character is its first part alone.
"""

import unicodedata


def compose(text: str) -> tuple[str, list[tuple[int, int]]]:
    r"""The composed text, and for each of its characters the (start, end) in the original.

    >>> compose("\u1112\u1161\u11ab 글")
    ('한 글', [(0, 3), (3, 4), (4, 5)])
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        # A part ends before a character that neither is a mark nor composes with what stands before it.
        if end < len(text) and not _stands_alone(text[start:end], text[end]):
            continue
        part = unicodedata.normalize("NFC", text[start:end])
        parts.append(part)
        if part == text[start:end]:
            spans += [(place, place + 1) for place in range(start, end)]
        else:
            # Marks that no character composes stay separate, maybe in another order: all have the place of the whole.
            spans += [(start, end)] * len(part)
        start = end
    return "".join(parts), spans


def _stands_alone(before: str, character: str) -> bool:
    if character.isascii():
        return True
    if unicodedata.combining(character):
        return False
    joined = unicodedata.normalize("NFC", before + character)
    return joined == unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
