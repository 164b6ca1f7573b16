"""Schedules, optimisers, rules on parameter paths, and row-sparse updates of large tables."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.optim.adapters import Lora as Lora
    from bert_elmo_jax.optim.adapters import Merge as Merge
    from bert_elmo_jax.optim.adapters import count_params as count_params
    from bert_elmo_jax.optim.adapters import list_adapters as list_adapters
    from bert_elmo_jax.optim.adapters import lora as lora
    from bert_elmo_jax.optim.masks import decayed as decayed
    from bert_elmo_jax.optim.masks import depths as depths
    from bert_elmo_jax.optim.masks import freeze as freeze
    from bert_elmo_jax.optim.masks import scale_by_depth as scale_by_depth
    from bert_elmo_jax.optim.optimizers import adagrad as adagrad
    from bert_elmo_jax.optim.optimizers import adamw as adamw
    from bert_elmo_jax.optim.optimizers import bert_adam as bert_adam
    from bert_elmo_jax.optim.optimizers import lamb as lamb
    from bert_elmo_jax.optim.optimizers import row_sgd as row_sgd
    from bert_elmo_jax.optim.paths import average as average
    from bert_elmo_jax.optim.paths import matches as matches
    from bert_elmo_jax.optim.rows import Rows as Rows
    from bert_elmo_jax.optim.rows import as_rows as as_rows
    from bert_elmo_jax.optim.rows import find_rows as find_rows
    from bert_elmo_jax.optim.rows import places as places
    from bert_elmo_jax.optim.rows import put_rows as put_rows
    from bert_elmo_jax.optim.rows import take_rows as take_rows
    from bert_elmo_jax.optim.rows import values as values
    from bert_elmo_jax.optim.schedules import Schedule as Schedule
    from bert_elmo_jax.optim.schedules import constant as constant
    from bert_elmo_jax.optim.schedules import cosine as cosine
    from bert_elmo_jax.optim.schedules import inverse_square_root as inverse_square_root
    from bert_elmo_jax.optim.schedules import linear_after_warmup as linear_after_warmup
    from bert_elmo_jax.optim.schedules import linear_from_start as linear_from_start
    from bert_elmo_jax.optim.schedules import noam as noam
    from bert_elmo_jax.optim.schedules import phases as phases
    from bert_elmo_jax.optim.schedules import slanted_triangular as slanted_triangular
    from bert_elmo_jax.optim.schedules import warmup_stable_decay as warmup_stable_decay
    from bert_elmo_jax.optim.unfreezing import Spans as Spans
    from bert_elmo_jax.optim.unfreezing import train_during as train_during

__all__, __getattr__ = lazy_names(__name__, __file__)
