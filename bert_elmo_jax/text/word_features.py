"""Hand-made features of words, as numbers: their suffix, their capitals, and whether a gazetteer lists them.

Collobert et al. 2011, section 6: suffixes of two letters for parts of speech, a gazetteer for entities.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int32

CAPITALS = 4  # no capital, all letters, the first one, others
PLACES = 3  # outside of a phrase of the gazetteer, its first word, its other words


@dataclass(frozen=True)
class WordFeatures:
    """Numbers the features of words: a column for each kind, and one for each type of the gazetteer.

    `gazetteer` has for each type of entity its phrases and the number of training sentences with each.

    >>> names = {"LOC": {"New York": 2, "Rome": 1}}
    >>> features = WordFeatures(2, ("er", "ed"), True, names)
    >>> features.columns, features.rows
    (3, 10)
    >>> features.ids(["New", "York", "river", "Rome"]).tolist()
    [[0, 5, 8], [0, 5, 9], [1, 3, 7], [0, 5, 8]]
    >>> features.ids(["New", "York", "river", "Rome"], training=True)[:, 2].tolist()
    [8, 9, 7, 7]
    """

    suffix: int = 0  # letters; 0: no such column
    suffixes: tuple[str, ...] = ()
    capitals: bool = False
    gazetteer: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def build(
        cls, counts: Mapping[str, int], suffix: int, capitals: bool, phrases: Iterable[tuple[str, str]], min_count: int
    ) -> "WordFeatures":
        """Build the features from the word counts of training data, and the phrases (type, words) of each sentence.

        A suffix that the words have `min_count` times has a number of its own.

        >>> WordFeatures.build({"river": 3, "deer": 2, "a": 9}, 2, False, [], 5).suffixes
        ('a', 'er')
        """
        endings = Counter[str]()
        for word, count in counts.items() if suffix else ():
            endings[word[-suffix:].lower()] += count
        gazetteer: dict[str, dict[str, int]] = {}
        for (kind, phrase), count in sorted(Counter(phrases).items()):
            gazetteer.setdefault(kind, {})[phrase] = count
        frequent = sorted(ending for ending, count in endings.items() if count >= min_count)
        return cls(suffix, tuple(frequent), capitals, gazetteer)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "WordFeatures":
        """Return the features that `asdict` described."""
        return cls(fields["suffix"], tuple(fields["suffixes"]), fields["capitals"], fields["gazetteer"])

    def asdict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    @property
    def columns(self) -> int:
        """The number of features of a word."""
        return bool(self.suffix) + self.capitals + len(self.gazetteer)

    @property
    def rows(self) -> int:
        """The number of different values of all features together."""
        return bool(self.suffix) * (1 + len(self.suffixes)) + self.capitals * CAPITALS + len(self.gazetteer) * PLACES

    def ids(self, words: Sequence[str], training: bool = False) -> Int32[np.ndarray, "T F"]:
        """Return the numbers of each word's features; 0 to `rows`, different ones in each column.

        In `training` a phrase that the training data have once is not in the gazetteer: it would always be right there,
        and seldom later.
        """
        columns, first = [], 0
        if self.suffix:
            number_of = {ending: n for n, ending in enumerate(self.suffixes, start=1)}
            columns.append([number_of.get(word[-self.suffix :].lower(), 0) for word in words])
            first += 1 + len(self.suffixes)
        if self.capitals:
            columns.append([first + _capitals(word) for word in words])
            first += CAPITALS
        for phrases in self.gazetteer.values():
            columns.append([first + place for place in _places(words, phrases, 2 if training else 1)])
            first += PLACES
        return np.array(columns, np.int32).reshape(len(columns), len(words)).T


def _capitals(word: str) -> int:
    """Return the number of a word's capitals.

    >>> [_capitals(word) for word in ("2nd", "NATO", "Rome", "iPhone", "강")]
    [0, 1, 2, 3, 0]
    """
    letters = [letter for letter in word if letter.isalpha()]
    if not any(letter.isupper() for letter in letters):
        return 0
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return 1
    return 2 if word[0].isupper() else 3


def _places(words: Sequence[str], phrases: Mapping[str, int], least: int) -> list[int]:
    """Return the place of each word in the longest phrases from the left: 0 outside, 1 first, 2 others."""
    longest = max((phrase.count(" ") + 1 for phrase in phrases), default=0)
    places, n = [0] * len(words), 0
    while n < len(words):
        lengths = range(min(longest, len(words) - n), 0, -1)
        length = next((size for size in lengths if phrases.get(" ".join(words[n : n + size]), 0) >= least), 0)
        places[n : n + length] = [1, *[2] * (length - 1)] if length else []
        n += max(length, 1)
    return places
