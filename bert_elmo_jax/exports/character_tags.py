"""Tags of characters, and the places of pieces in a text, for the runners of exported models."""

from typing import Any


def tag_characters(text: str, offsets: Any, piece_tags: Any) -> list[Any]:
    """Return the tag of each character, from the places of the pieces in the text and their tags, as `predict` does.

    A character inside a piece continues the entity of the one before it, and so does a space inside an entity.

    >>> tag_characters("서울역 앞", [(0, 2), (2, 3), (4, 5)], ["B-LC", "I-LC", "O"])
    ['B-LC', 'I-LC', 'I-LC', 'O', 'O']
    """
    first: dict[int, str] = {}
    for (start, _), tag in zip(offsets, piece_tags):
        first.setdefault(start, tag)
    tags = [first.get(n, "") for n in range(len(text))]
    for n, character in enumerate(text):
        if not tags[n] and not character.isspace():
            prefix, _, kind = tags[n - 1].partition("-") if n and tags[n - 1] else ("O", "", "")
            tags[n] = "O" if prefix == "O" else f"I-{kind}"
    for n, character in enumerate(text):
        if character.isspace():
            before = tags[n - 1].partition("-")[2] if n else ""
            following = next((tag for c, tag in zip(text[n + 1 :], tags[n + 1 :]) if not c.isspace()), "O")
            prefix, _, kind = following.partition("-")
            tags[n] = f"I-{kind}" if prefix in ("I", "E") and kind == before else "O"
    return tags


def trim_spaces(text: str, offsets: Any) -> list[tuple[int, int]]:
    """Return the places of pieces without the spaces that they begin with.

    >>> trim_spaces("a river", [(0, 1), (1, 7)])
    [(0, 1), (2, 7)]
    """
    return [(end - len(text[start:end].lstrip()), end) for start, end in offsets]
