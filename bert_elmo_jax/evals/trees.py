"""Attachment scores of dependency trees, as the evaluation script of the CoNLL 2018 shared task computes them.

Every word counts, punctuation too; of a relation only the part before the colon, so `nsubj:pass` is a right `nsubj`.
The words of the text are given, so that precision, recall and F1 are one number. `las_subtypes` compares whole
relations.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int64

Tree = tuple[Sequence[int], Sequence[str]]  # head and relation of each word


def universal(relation: str) -> str:
    """Return the universal part of a relation.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return relation.partition(":")[0]


def count_right(right: Tree, predicted: Tree) -> Int64[np.ndarray, "4"]:
    """Return the words of a sentence with the right head, with head and relation, with both and subtype, and all.

    >>> count_right(((2, 0), ("nsubj:pass", "root")), ((2, 0), ("nsubj", "root"))).tolist()
    [2, 2, 1, 2]
    """
    if len(right[0]) != len(predicted[0]):
        raise ValueError(f"trees of {len(right[0])} and {len(predicted[0])} words; expected the same words")
    for heads, relations in (right, predicted):
        if len(heads) != len(relations):
            raise ValueError(f"a tree has {len(heads)} heads but {len(relations)} relations: give both for each word")
    counts = np.zeros(4, np.int64)
    for head, relation, guess, name in zip(*right, *predicted):
        same = head == guess
        counts += (same, same and universal(relation) == universal(name), same and relation == name, True)
    return counts


def score(right: Iterable[Tree], predicted: Iterable[Tree]) -> dict[str, float]:
    """Return the labelled and unlabelled attachment scores of sentences.

    >>> score([((2, 0), ("nsubj", "root"))], [((2, 0), ("obj", "root"))])
    {'las': 0.5, 'uas': 1.0, 'las_subtypes': 0.5}
    """
    right, predicted = list(right), list(predicted)
    if len(right) != len(predicted):
        raise ValueError(f"{len(right)} right trees but {len(predicted)} predicted: give the same sentences")
    heads, labelled, subtypes, words = map(float, sum(map(count_right, right, predicted), np.zeros(4, np.int64)))
    if not words:
        raise ValueError("no words to score; give sentences")
    return {"las": labelled / words, "uas": heads / words, "las_subtypes": subtypes / words}
