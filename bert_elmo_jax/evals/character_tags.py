"""Tags of characters, from the tags of pieces; the runners of exported models hold this code, too."""

from typing import Any


def spread_tags(characters: Any, tags: Any) -> list[Any]:
    """Extend the tags of pieces' first characters ("" for all others) to all characters.

    A character inside a piece continues the entity of the one before it, and so does a space inside an entity.

    >>> spread_tags("서울역 앞", ["B-LC", "", "I-LC", "", "O"])
    ['B-LC', 'I-LC', 'I-LC', 'O', 'O']
    """
    spread = list(tags)
    for n, character in enumerate(characters):
        if not spread[n] and not character.isspace():
            prefix, _, kind = spread[n - 1].partition("-") if n and spread[n - 1] else ("O", "", "")
            spread[n] = "O" if prefix == "O" else f"I-{kind}"
    for n, character in enumerate(characters):
        if character.isspace():
            before = spread[n - 1].partition("-")[2] if n else ""
            following = next((tag for c, tag in zip(characters[n + 1 :], spread[n + 1 :]) if not c.isspace()), "O")
            prefix, _, kind = following.partition("-")
            spread[n] = f"I-{kind}" if prefix in ("I", "E") and kind == before else "O"
    return spread
