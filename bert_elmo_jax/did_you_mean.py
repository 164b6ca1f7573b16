"""The nearest of the names that are known, for messages about one that is not."""

import difflib
from collections.abc import Iterable


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The end of a message: the known name that looks most like what was given, nothing where none does.

    Capitals, hyphens and underscores make no difference here, since people take one for the other.

    >>> "there is no task 'SST-2'" + did_you_mean("SST-2", ["cola", "sst2", "stsb"])
    "there is no task 'SST-2'; did you mean sst2?"
    >>> did_you_mean("강", ["frozen", "all"])
    ''
    """
    near = nearest(given, known)
    return f"; did you mean {near}?" if near else ""


def nearest(given: object, known: Iterable[str]) -> str | None:
    """The known name that looks most like what was given; None where none does.

    >>> nearest("learning_rat", ["learning_rate", "layer_decay"])
    'learning_rate'
    """
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(_folded(name), name)
    found = difflib.get_close_matches(_folded(str(given)), folded, n=1)
    return folded[found[0]] if found else None


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")
