"""Where the tensors of an encoder and its heads are in a file whose names have a prefix."""

from collections.abc import Mapping
from typing import Any


def ancestors(prefix: str, separator: str) -> list[str]:
    """Return a prefix and all its parents, the possible scopes of an encoder's heads."""
    names = prefix.split(separator)[:-1]
    return [separator.join([*names[:size], ""]) for size in range(len(names), -1, -1)]


def encoder_prefix(names: Mapping[str, Any], word_embeddings: str, separator: str, source: str) -> str:
    """Return the prefix of an encoder's tensor names, found by its word embeddings."""
    ends = [name for name in names if name == word_embeddings or name.endswith(separator + word_embeddings)]
    if not ends:
        some = ", ".join(sorted(names)[:5]) or "nothing"
        raise ValueError(
            f"{source} has no such encoder: no name ends with {word_embeddings!r}. It has {len(names)} tensors: {some}"
        )
    if len(ends) > 1:
        raise ValueError(f"{source} has {len(ends)} encoders: {', '.join(sorted(ends))}. Save one model per file.")
    return ends[0].removesuffix(word_embeddings)


def locate(
    table: Mapping[str, str], stored: Mapping[str, str], prefix: str, separator: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the stored name of every path found in the file, and the expected name of every path.

    `table` maps paths to names without prefix, `stored` maps names as the table spells them to names as the file does.
    An encoder's tensors are looked up under `prefix`, a head's tensors also under each parent of it.
    """
    found, expected = {}, {}
    for path, name in table.items():
        inside = path.startswith("encoder/")
        expected[path] = prefix + name if inside else name
        for scope in [prefix] if inside else ancestors(prefix, separator):
            if scope + name in stored:
                found[path] = stored[scope + name]
                break
    return found, expected
