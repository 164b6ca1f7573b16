"""Whole networks of a task, which take any encoder's layers as arrays [L, B, T, D] with a vector for each word."""

from bert_elmo_jax.task_models.tagger import (
    Tagger,
    TaggerConfig,
    best_tags,
    init_tagger,
    tagger_coefficients,
    tagger_loss,
)
from bert_elmo_jax.task_models.word_input import WordInput

__all__ = [
    "Tagger",
    "TaggerConfig",
    "WordInput",
    "best_tags",
    "init_tagger",
    "tagger_coefficients",
    "tagger_loss",
]
