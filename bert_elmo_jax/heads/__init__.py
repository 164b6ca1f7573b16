"""Task heads on top of any encoder."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.heads.modules import Choice, Classify, Span, Tag
    from bert_elmo_jax.heads.task_head import TaskHead

__all__, __getattr__ = lazy_names(__name__, __file__)
