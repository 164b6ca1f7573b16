"""Task heads on top of any encoder."""

from bert_elmo_jax.heads.modules import Choice, Classify, Span, Tag
from bert_elmo_jax.heads.task_head import TaskHead

__all__ = ["Choice", "Classify", "Span", "Tag", "TaskHead"]
