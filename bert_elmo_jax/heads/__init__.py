"""Task heads on top of any encoder: one thin module per head."""

from bert_elmo_jax.heads.choice import Choice
from bert_elmo_jax.heads.classify import Classify
from bert_elmo_jax.heads.span import Span
from bert_elmo_jax.heads.tag import Tag

__all__ = ["Choice", "Classify", "Span", "Tag"]
