"""Words with their character offsets, so that an answer can be cut from the original text."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.text.words import pattern_of


class WordSpans(NamedTuple):
    """The words of a text and their (start, end) offsets."""

    words: tuple[str, ...]
    spans: Int32[np.ndarray, "T 2"]


def word_spans(text: str, rule: str = "punctuation") -> WordSpans:
    r"""Return the words that `split_words` finds and their offsets: each word is `text[start:end]`.

    >>> words, spans = word_spans("배를\r\n탔다. 😀!")
    >>> words, spans.tolist()
    (('배를', '탔다', '.', '😀', '!'), [[0, 2], [4, 6], [6, 7], [8, 9], [9, 10]])
    """
    found = list(pattern_of(rule).finditer(text))
    spans = np.array([match.span() for match in found], np.int32).reshape(-1, 2)
    return WordSpans(tuple(match.group() for match in found), spans)
