"""A baseline for probes: the label that a word had most often in training."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

Label = TypeVar("Label", bound=Hashable)


def most_frequent(labels: Sequence[Label]) -> Label:
    """Return the most frequent label, the first one of ties."""
    if not labels:
        raise ValueError("no label was given: give the labels of the training data")
    return Counter(labels).most_common(1)[0][0]


def rank_labels(words: Sequence[str], labels: Sequence[Label]) -> dict[str, list[Label]]:
    """Return the labels of each word, most frequent first."""
    counts: dict[str, Counter[Label]] = {}
    for word, label in zip(words, labels):
        counts.setdefault(word, Counter())[label] += 1
    return {word: [label for label, _ in count.most_common()] for word, count in counts.items()}


def by_word(
    train_words: Sequence[str], train_labels: Sequence[Label], words: Sequence[str], *, unknown: Label | None = None
) -> list[Label]:
    """Return the label that each word had most often in training.

    Words that were not seen get `unknown`, by default the most frequent label of all.
    """
    if len(train_words) != len(train_labels):
        raise ValueError(f"{len(train_words)} words and {len(train_labels)} labels: give a label for each word")
    ranked = rank_labels(train_words, train_labels)
    other = most_frequent(train_labels) if unknown is None else unknown
    return [ranked[word][0] if word in ranked else other for word in words]


def accuracy(right: Sequence[Label], given: Sequence[Label]) -> float:
    """Return the share of labels that are right.

    >>> accuracy(["a", "b"], ["a", "a"])
    0.5
    """
    if len(right) != len(given) or not len(right):
        raise ValueError(f"{len(right)} right labels and {len(given)} given: expected the same number, at least 1")
    return sum(a == b for a, b in zip(right, given)) / len(right)
