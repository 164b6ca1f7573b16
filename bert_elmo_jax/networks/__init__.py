"""Task networks, which take the layers of any encoder as arrays [L, B, T, D] with one vector per word."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.networks.bidaf import AnswerScores, Bidaf, BidafConfig, answer_scores, bidaf_loss
    from bert_elmo_jax.networks.tagger import Tagger, TaggerConfig, best_tags, tagger_loss
    from bert_elmo_jax.networks.text_classifiers import Bcn, BcnConfig, Esim, EsimConfig, label_loss, label_scores
    from bert_elmo_jax.networks.word_network import (
        NetworkConfig,
        WordInput,
        init_network,
        network_coefficients,
        network_shapes,
    )

__all__, __getattr__ = lazy_names(__name__, __file__)
