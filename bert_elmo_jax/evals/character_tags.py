"""Tags of characters, from the tags of pieces; the runners of exported models hold this code, too."""

from typing import Any


def spread_tags(characters: Any, tags: Any) -> list[Any]:
    """Extend the tags of pieces' first characters ("" for all others) to all characters.

    A character inside a piece continues the entity of the one before it, and so does a space inside an entity. After
    E- or S-, the last character of the piece ends the entity.

    >>> spread_tags("서울역 앞", ["B-LC", "", "I-LC", "", "O"])
    ['B-LC', 'I-LC', 'I-LC', 'O', 'O']
    >>> spread_tags("김치찌개", ["S-FD", "", "", ""])
    ['B-FD', 'I-FD', 'I-FD', 'E-FD']
    """
    spread = list(tags)
    for n, character in enumerate(characters):
        if not spread[n] and not character.isspace():
            prefix, dash, kind = spread[n - 1].partition("-") if n and spread[n - 1] else ("O", "", "")
            ends = prefix in ("S", "E")
            if ends:
                spread[n - 1] = ("B" if prefix == "S" else "I") + dash + kind
            spread[n] = "O" if prefix == "O" else ("E" if ends else "I") + dash + kind
    following = ["O"] * len(spread)  # the tag of the next character that is no space
    for n in range(len(spread) - 1, 0, -1):
        following[n - 1] = following[n] if characters[n].isspace() else spread[n]
    for n, character in enumerate(characters):
        if character.isspace():
            before, _, kind = spread[n - 1].partition("-") if n else ("O", "", "")
            prefix, dash, same = following[n].partition("-")
            inside = before in ("B", "I") and prefix in ("I", "E") and same == kind
            spread[n] = f"I{dash}{kind}" if inside else "O"
    return spread
