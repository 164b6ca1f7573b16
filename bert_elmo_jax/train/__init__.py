"""Training, independent of any model: losses, data and placement are functions passed in."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.train.averaged import check_average, write_average
    from bert_elmo_jax.train.checkpoint import Checkpoints, meet
    from bert_elmo_jax.train.devices import matmul_rate
    from bert_elmo_jax.train.loop import Patience, Schedule, restore, train
    from bert_elmo_jax.train.parallel import (
        DEVICES,
        ONE_DEVICE,
        RULES,
        Parallel,
        Placement,
        kept_whole,
        make_mesh,
        over_mesh,
        over_pmap,
        shardings,
    )
    from bert_elmo_jax.train.run_guard import DIVERGED, STOPPED, Diverged, only_process, refuse_other_files, same_run
    from bert_elmo_jax.train.step import State, Step, make_evaluate, make_step, new_state

__all__, __getattr__ = lazy_names(__name__, __file__)
