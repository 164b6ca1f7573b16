"""Task networks, which take the layers of any encoder as arrays [L, B, T, D] with one vector per word."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.networks.bidaf import AnswerScores as AnswerScores
    from bert_elmo_jax.networks.bidaf import Bidaf as Bidaf
    from bert_elmo_jax.networks.bidaf import BidafConfig as BidafConfig
    from bert_elmo_jax.networks.bidaf import answer_scores as answer_scores
    from bert_elmo_jax.networks.bidaf import bidaf_loss as bidaf_loss
    from bert_elmo_jax.networks.parser import Parser as Parser
    from bert_elmo_jax.networks.parser import ParserConfig as ParserConfig
    from bert_elmo_jax.networks.parser import parse as parse
    from bert_elmo_jax.networks.parser import parser_loss as parser_loss
    from bert_elmo_jax.networks.tagger import Tagger as Tagger
    from bert_elmo_jax.networks.tagger import TaggerConfig as TaggerConfig
    from bert_elmo_jax.networks.tagger import best_tags as best_tags
    from bert_elmo_jax.networks.tagger import tagger_loss as tagger_loss
    from bert_elmo_jax.networks.text_classifiers import Bcn as Bcn
    from bert_elmo_jax.networks.text_classifiers import BcnConfig as BcnConfig
    from bert_elmo_jax.networks.text_classifiers import Esim as Esim
    from bert_elmo_jax.networks.text_classifiers import EsimConfig as EsimConfig
    from bert_elmo_jax.networks.text_classifiers import label_loss as label_loss
    from bert_elmo_jax.networks.text_classifiers import label_scores as label_scores
    from bert_elmo_jax.networks.word_network import NetworkConfig as NetworkConfig
    from bert_elmo_jax.networks.word_network import WordInput as WordInput
    from bert_elmo_jax.networks.word_network import init_network as init_network
    from bert_elmo_jax.networks.word_network import network_coefficients as network_coefficients
    from bert_elmo_jax.networks.word_network import network_shapes as network_shapes

__all__, __getattr__ = lazy_names(__name__, __file__)
