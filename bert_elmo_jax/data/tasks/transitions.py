"""Which tag may follow which: the mask that a tagger's best path keeps to."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from bert_elmo_jax.data.tasks.schemes import Scheme


def legal_transitions(tags: Sequence[str], scheme: Scheme | None) -> Bool[np.ndarray, "N N"]:
    """Entry i, j: tag j may follow tag i. Row K: what may begin a sentence; column K: what may end one.

    K is the number of tags. Without a scheme (tags that are no entities) everything may.

    >>> tags = ["B-LOC", "I-LOC", "I-PER", "O"]
    >>> legal_transitions(tags, "IOB2").astype(int).tolist()
    [[1, 1, 0, 1, 1], [1, 1, 0, 1, 1], [1, 0, 1, 1, 1], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1]]
    >>> legal_transitions(tags, "IOB1")[:, 0].tolist()  # B- only where an entity of its type goes on otherwise
    [True, True, False, False, False]
    """
    k = len(tags)
    legal = np.ones((k + 1, k + 1), bool)
    if scheme is None:
        return legal
    # The sides of a sentence are like an O.
    parts = [tag.partition("-")[::2] for tag in tags] + [("O", "")]
    for i, before in enumerate(parts):
        for j, after in enumerate(parts):
            legal[i, j] = _may_follow(before, after, scheme)
    return legal


def _may_follow(before: tuple[str, str], after: tuple[str, str], scheme: Scheme) -> bool:
    (prefix, kind), (following, other) = before, after
    same = kind == other
    if scheme == "IOB2":
        return following != "I" or (prefix in ("B", "I") and same)
    if scheme == "IOB1":
        return following != "B" or (prefix in ("B", "I") and same)
    goes_on = following in ("I", "E")
    return goes_on and same if prefix in ("B", "I") else not goes_on
