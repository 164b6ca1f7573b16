"""The toy world: a small generated language in English and Korean whose statistics are known exactly.

Write a corpus and tasks, train a model, and compare it with the best possible score:

>>> world = ToyWorld("ko")
>>> world.document(2).sentences[1].text
'은행원들은 회사를 닫는다 .'
>>> [[(word, probability)]] = fill_masks(world, "할머니께서는 바닷가에서 [MASK] 당기셨다 .", top=1)
>>> word
'배를'
"""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names
from bert_elmo_jax.toyworld.oracle import (
    MASK,
    fill_masks,
    mask_words,
    masked_posteriors,
    next_sentence_probabilities,
    sense_posteriors,
    sense_priors,
    topic_posteriors,
    word_log_probabilities,
)
from bert_elmo_jax.toyworld.scores import Best, best_masked, best_next, best_senses, best_topics, perplexity
from bert_elmo_jax.toyworld.tasks import (
    SPLITS,
    next_examples,
    question_examples,
    sense_examples,
    sentence_pairs,
    topic_examples,
    write_corpus,
    write_pairs,
    write_tasks,
)
from bert_elmo_jax.toyworld.translation import distinct_pairs, right_translations, translations
from bert_elmo_jax.toyworld.world import Document, Sentence, ToyWorld

if TYPE_CHECKING:
    from bert_elmo_jax.toyworld.exact_ceilings import exact_ceiling as exact_ceiling
    from bert_elmo_jax.toyworld.readers import READERS as READERS
    from bert_elmo_jax.toyworld.readers import VIEWS as VIEWS
    from bert_elmo_jax.toyworld.readers import Place as Place
    from bert_elmo_jax.toyworld.readers import View as View
    from bert_elmo_jax.toyworld.readers import best_reader as best_reader
    from bert_elmo_jax.toyworld.readers import list_places as list_places
    from bert_elmo_jax.toyworld.readers import word_label_table as word_label_table

__all__, __getattr__ = lazy_names(__name__, __file__)
