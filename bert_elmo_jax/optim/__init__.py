"""Schedules, optimisers, rules on parameter paths, and row-sparse updates of large tables."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.optim.adapters import Lora, Merge, count_params, list_adapters, lora
    from bert_elmo_jax.optim.masks import decayed, depths, freeze, scale_by_depth
    from bert_elmo_jax.optim.optimizers import adagrad, adamw, bert_adam, lamb
    from bert_elmo_jax.optim.paths import average, matches
    from bert_elmo_jax.optim.rows import Rows, as_rows, find_rows, places, put_rows, take_rows, values
    from bert_elmo_jax.optim.schedules import (
        Schedule,
        constant,
        cosine,
        inverse_square_root,
        linear_after_warmup,
        linear_from_start,
        noam,
        phases,
        slanted_triangular,
        warmup_stable_decay,
    )
    from bert_elmo_jax.optim.unfreezing import Spans, train_during

__all__, __getattr__ = lazy_names(__name__, __file__)
