"""Add words to the vocabulary of an AWD-LSTM, as fastai does for the texts of a task."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_elmo_jax.text import FastaiVocabulary, WordVocabulary


def add_words(vocabulary: Any, params: Mapping[str, Any], words: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Return vocabulary and parameters with more words at the end, whose embeddings are the mean of the others.

    >>> old = FastaiVocabulary(["xxunk", "xxpad"])
    >>> params = {"encoder": {"embeddings": {"word": np.float32([[0, 2], [4, 2]])}}, "lm": {"bias": np.float32([1, 3])}}
    >>> vocabulary, new = add_words(old, params, ["bank"])
    >>> vocabulary.words[-1], new["encoder"]["embeddings"]["word"].tolist(), new["lm"]["bias"].tolist()
    ('bank', [[0.0, 2.0], [4.0, 2.0], [2.0, 2.0]], [1.0, 3.0, 2.0])
    """

    def longer(rows: Any) -> np.ndarray:
        rows = np.asarray(rows, np.float32)
        return np.concatenate([rows, np.repeat(rows.mean(axis=0, keepdims=True), len(words), axis=0)])

    all_words = [*vocabulary.words, *words]
    longer_vocabulary: Any
    if isinstance(vocabulary, FastaiVocabulary):
        longer_vocabulary = FastaiVocabulary(all_words)
    else:
        longer_vocabulary = WordVocabulary(all_words, rule=vocabulary.rule)
    embeddings = {**params["encoder"]["embeddings"], "word": longer(params["encoder"]["embeddings"]["word"])}
    new = {**params, "encoder": {**params["encoder"], "embeddings": embeddings}}
    if "lm" in params:
        new["lm"] = {name: longer(rows) for name, rows in params["lm"].items()}
    return longer_vocabulary, new
