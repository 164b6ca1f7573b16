"""Unicode composition (NFC) with offsets into the original text.

The libraries compose text, too, but their offsets cover only the first part of a composed character.
"""

import unicodedata


def compose(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the composed text, and for each of its characters the (start, end) in the original."""
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
            # Marks that do not compose may be reordered, so each character gets the span of the whole part.
            spans += [(start, end)] * len(part)
        start = end
    return "".join(parts), spans


def _starts_part(before: str, character: str) -> bool:
    if character.isascii():
        return True
    if unicodedata.combining(character):
        return False
    joined = unicodedata.normalize("NFC", before + character)
    return joined == unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
