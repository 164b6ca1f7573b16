"""The contract of families that classify documents of any length, part by part."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float32, Int32


class DocumentReader(NamedTuple):
    """A family's functions for ULMFiT's classifier of documents, `heads.pool_classifier`.

    The family's configuration has a field `classifier`, the widths of the classifier's layers, and its parameters have
    a head of that name. In a batch of B documents `words` are [B, N, T], in N parts of T words, and `lengths` [B].
    """

    # (configuration, vocabulary, text) -> ids in reading order, after the mark of begin
    read: Callable[[Any, Any, str], Int32[np.ndarray, "N"]]
    # (configuration, encoder's parameters, words, lengths, key, last) -> vectors [B, I]; see `pool_documents`
    pool: Callable[..., Array]
    # (configuration, parameters, words [B, N · T], lengths, T, put) -> logits [B, C]
    classify: Callable[..., Float32[np.ndarray, "B C"]]
    width: Callable[[Any], int]  # of the vectors that are pooled
    direction: Callable[[Any], str]  # "forward" or "backward"
    # (vocabulary) -> its words as a `WordVocabulary` with the same ids, or itself, to prepare a corpus with
    for_corpus: Callable[[Any], Any]
    # (vocabulary of words, parameters, new words) -> both with the new words at the end
    add_words: Callable[[Any, Any, Sequence[str]], tuple[Any, dict[str, Any]]]
    rates: tuple[str, ...]  # fields of the configuration that are rates of dropout


def count_parts(gradient_words: int, part: int) -> int:
    """Return the number of parts that hold the last `gradient_words` words of a document; 0 stays 0, which means all.

    >>> count_parts(1400, 70), count_parts(71, 70), count_parts(0, 70)
    (20, 2, 0)
    """
    return -(-gradient_words // part)
