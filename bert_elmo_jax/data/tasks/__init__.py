"""Read raw task files into examples; turn questions into windows, and scores of windows into answers."""

from bert_elmo_jax.data.tasks.answers import AnswerPrediction, Candidate, find_answers
from bert_elmo_jax.data.tasks.examples import Answer, ChoiceExample, Question, TaggedSentence, TextExample
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.labelled_batches import labelled_batches
from bert_elmo_jax.data.tasks.labels import find_labels, find_scheme, find_tags, label_ids, tag_ids
from bert_elmo_jax.data.tasks.layouts import LAYOUTS, Layout, read_swag, read_texts
from bert_elmo_jax.data.tasks.question_files import read_qamr, read_squad
from bert_elmo_jax.data.tasks.rows import Window, make_windows
from bert_elmo_jax.data.tasks.tagged import TAG_LAYOUTS, TagLayout, read_tagged
from bert_elmo_jax.data.tasks.task import TASKS, Task, read_examples, task_named
from bert_elmo_jax.lazy_imports import lazy_names

__all__, __getattr__ = lazy_names(__name__, __file__)
