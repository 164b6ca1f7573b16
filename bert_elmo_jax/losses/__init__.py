"""Losses as pure functions that return sums `(total, weight)`, to be divided after adding up devices and steps."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names
from bert_elmo_jax.losses.cross_entropy import (
    Sums,
    accuracy,
    answer_loss,
    binary_cross_entropy,
    cross_entropy,
    smoothed_cross_entropy,
)
from bert_elmo_jax.losses.distillation import cosine_distance, soft_cross_entropy
from bert_elmo_jax.losses.full_softmax import full_softmax, perplexity
from bert_elmo_jax.losses.sampled_softmax import Negatives, draw_negatives, sampled_softmax

if TYPE_CHECKING:
    from bert_elmo_jax.losses.crf import crf_loss as crf_loss
    from bert_elmo_jax.losses.crf import log_partition as log_partition
    from bert_elmo_jax.losses.crf import marginals as marginals
    from bert_elmo_jax.losses.crf import viterbi as viterbi

__all__, __getattr__ = lazy_names(__name__, __file__)
