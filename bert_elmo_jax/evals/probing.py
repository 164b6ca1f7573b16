"""What probes are held against: the label that a word had most often in training."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

Label = TypeVar("Label", bound=Hashable)


def most_frequent(labels: Sequence[Label]) -> Label:
    """The label that is most frequent; of equals the first.

    >>> most_frequent(["명사", "동사", "동사"])
    '동사'
    """
    if not labels:
        raise ValueError("no label was given: give those of the training data")
    return Counter(labels).most_common(1)[0][0]


def by_word(
    train_words: Sequence[str], train_labels: Sequence[Label], words: Sequence[str], *, unknown: Label | None = None
) -> list[Label]:
    """For each word the label that it had most often in training; for a word not seen there `unknown`.

    Without `unknown` that is the most frequent label of all.

    >>> by_word(["배를", "탔다", "배를"], ["NOUN", "VERB", "NOUN"], ["탔다", "강이"])
    ['VERB', 'NOUN']
    """
    if len(train_words) != len(train_labels):
        raise ValueError(f"{len(train_words)} words and {len(train_labels)} labels: give a label for each word")
    counts: dict[str, Counter[Label]] = {}
    for word, label in zip(train_words, train_labels):
        counts.setdefault(word, Counter())[label] += 1
    usual = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    other = most_frequent(train_labels) if unknown is None else unknown
    return [usual.get(word, other) for word in words]


def accuracy(right: Sequence[Label], given: Sequence[Label]) -> float:
    """The share of labels that are right.

    >>> accuracy(["a", "b"], ["a", "a"])
    0.5
    """
    if len(right) != len(given) or not len(right):
        raise ValueError(f"{len(right)} right labels and {len(given)} given: expected as many, and some")
    return sum(a == b for a, b in zip(right, given)) / len(right)
