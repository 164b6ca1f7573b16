"""Where the tensors of an encoder and its heads are in a file whose names have a prefix."""

from collections.abc import Mapping
from typing import Any


def ancestors(prefix: str, separator: str) -> list[str]:
    """Return a prefix and what is left as its last names are dropped: where the heads beside an encoder may be.

    >>> ancestors("module.bert.", ".")
    ['module.bert.', 'module.', '']
    """
    names = prefix.split(separator)[:-1]
    return [separator.join([*names[:size], ""]) for size in range(len(names), -1, -1)]


def encoder_prefix(names: Mapping[str, Any], word_embeddings: str, separator: str, source: str) -> str:
    """Return what stands before an encoder's names, seen from where its word embeddings are.

    >>> encoder_prefix({"bert.embeddings.word.weight": 0, "bert.pooler.bias": 0}, "embeddings.word.weight", ".", "x")
    'bert.'
    """
    ends = [name for name in names if name == word_embeddings or name.endswith(separator + word_embeddings)]
    if not ends:
        some = ", ".join(sorted(names)[:5]) or "nothing"
        raise ValueError(
            f"{source} does not hold the encoder: no name ends with {word_embeddings!r}. Among its {len(names)} "
            f"tensors: {some}"
        )
    if len(ends) > 1:
        raise ValueError(
            f"{source} holds {len(ends)} encoders, and nothing says which is meant: {', '.join(sorted(ends))}"
        )
    return ends[0].removesuffix(word_embeddings)


def locate(
    table: Mapping[str, str], stored: Mapping[str, str], prefix: str, separator: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name in the file of every path that is there, and for all paths the name it should have.

    `table` has their names without prefix, `stored` the names as the table writes them -> as the file does. An
    encoder's tensors stand under its prefix, those of a head under it or nearer to the top.

    >>> locate({"nsp/bias": "cls.bias"}, {"module.cls.bias": "module.cls.bias"}, "module.bert.", ".")
    ({'nsp/bias': 'module.cls.bias'}, {'nsp/bias': 'cls.bias'})
    """
    found, called = {}, {}
    for path, name in table.items():
        inside = path.startswith("encoder/")
        places = [prefix] if inside else ancestors(prefix, separator)
        called[path] = prefix + name if inside else name
        for place in places:
            if place + name in stored:
                found[path] = stored[place + name]
                break
    return found, called
