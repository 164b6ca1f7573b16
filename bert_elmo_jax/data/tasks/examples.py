"""Examples of task files: small records with the file and line they come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TextExample:
    """A text, or a pair of texts, and its label: a name, a number to predict, or None if unlabelled.

    >>> TextExample("정말 재미있다", None, "1", None, "train.tsv", 2).label
    '1'
    """

    text: str
    pair: str | None
    label: str | float | None
    id: str | None
    file: str
    line: int


@dataclass(frozen=True)
class TaggedSentence:
    """Words with their tags (None if untagged); `document` is the index of the document in the file.

    >>> TaggedSentence(("서울", "역"), ("B-LOC", "I-LOC"), "train.conll", (1, 2), document=0).line
    1
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    file: str
    lines: tuple[int, ...]
    document: int

    @property
    def line(self) -> int:
        """The line of the first word."""
        return self.lines[0]


@dataclass(frozen=True)
class ParsedSentence:
    """Words with the head of each (0 is the root, 1 the first word) and its relation, both None if unparsed.

    `tags` are parts of speech, and `source` the lines of the file, comments included; either may be None.

    >>> ParsedSentence(("배가", "온다"), None, (2, 0), ("nsubj", "root"), "train.conllu", (1, 2), None).line
    1
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    heads: tuple[int, ...] | None
    relations: tuple[str, ...] | None
    file: str
    lines: tuple[int, ...]
    source: tuple[str, ...] | None

    @property
    def line(self) -> int:
        """The line of the first word."""
        return self.lines[0]


@dataclass(frozen=True)
class ChoiceExample:
    """A text, its possible continuations, and the index of the right one (None if unlabelled).

    >>> ChoiceExample("She opens the door.", ("She enters.", "She eats it."), 0, None, "train.csv", 2).choices[0]
    'She enters.'
    """

    text: str
    choices: tuple[str, ...]
    label: int | None
    id: str | None
    file: str
    line: int


@dataclass(frozen=True)
class SentenceExample:
    """Two texts or three (the last is not similar to the first), and the similarity of the first two, if it is known.

    >>> SentenceExample(("비가 온다.", "비가 내린다."), 4.8, "sts.tsv", 2).pair
    '비가 내린다.'
    """

    texts: tuple[str, ...]
    label: float | None
    file: str
    line: int

    @property
    def text(self) -> str:
        """The first text."""
        return self.texts[0]

    @property
    def pair(self) -> str:
        """The second text."""
        return self.texts[1]


@dataclass(frozen=True)
class Answer:
    """An answer and its start in the context, in characters.

    >>> Answer("강가", 3).end
    5
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        """The end in the context (excluded)."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Question:
    """A question about a context; `answers` are the right spans, empty if there is no answer.

    >>> question = Question("q1", "어디 ?", "배는 강가에 있다", (Answer("강가", 3),), "train.json", 1)
    >>> [question.context[answer.start : answer.end] for answer in question.answers]
    ['강가']
    """

    id: str
    text: str
    context: str
    answers: tuple[Answer, ...]
    file: str
    line: int


def a_number(value: str) -> float | None:
    """Return a finite number, or None.

    >>> a_number("4.5"), a_number("nan"), a_number("4,5"), a_number("1_000")
    (4.5, None, None, None)
    """
    try:
        number = float(value)
    except ValueError:
        return None
    # float() also accepts "1_000".
    return number if np.isfinite(number) and "_" not in value else None


def text_of(example: Any) -> str:
    """Return the text of an example, or the context that is read with its question.

    >>> text_of(TaggedSentence(("서울", "역"), None, "train.conll", (1, 2), document=0))
    '서울 역'
    """
    words = getattr(example, "words", None)
    return " ".join(words) if words is not None else str(getattr(example, "context", None) or example.text)
