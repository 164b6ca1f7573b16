"""The mask of legal tag transitions for a tagger's best path."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from bert_elmo_jax.data.tasks.schemes import Scheme


def legal_transitions(tags: Sequence[str], scheme: Scheme | None) -> Bool[np.ndarray, "N N"]:
    """Return the mask whose entry i, j is True if tag j may follow tag i.

    With K tags, row K marks the tags that may begin a sentence, column K those that may end one. Without a scheme (tags
    that are not entities) every transition is legal.
    """
    if scheme is None:
        return np.ones((len(tags) + 1, len(tags) + 1), bool)
    # The boundaries of a sentence behave like O.
    parts = [tag.partition("-")[::2] for tag in tags] + [("O", "")]
    return np.array([[_may_follow(before, after, scheme) for after in parts] for before in parts])


def _may_follow(before: tuple[str, str], after: tuple[str, str], scheme: Scheme) -> bool:
    (prefix, kind), (following, other) = before, after
    same = kind == other
    if scheme == "IOB2":
        return following != "I" or (prefix in ("B", "I") and same)
    if scheme == "IOB1":
        return following != "B" or (prefix in ("B", "I") and same)
    continues = following in ("I", "E")
    return continues and same if prefix in ("B", "I") else not continues
