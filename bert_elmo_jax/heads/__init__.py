"""Task heads on top of any encoder."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.heads.modules import Choice as Choice
    from bert_elmo_jax.heads.modules import Classify as Classify
    from bert_elmo_jax.heads.modules import Span as Span
    from bert_elmo_jax.heads.modules import Tag as Tag
    from bert_elmo_jax.heads.task_head import TaskHead as TaskHead

__all__, __getattr__ = lazy_names(__name__, __file__)
