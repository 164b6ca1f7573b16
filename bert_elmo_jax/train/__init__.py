"""Training, independent of any model: losses, data and placement are functions passed in."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.train.checkpoint import Checkpoints, meet
    from bert_elmo_jax.train.devices import matmul_rate
    from bert_elmo_jax.train.loop import Diverged, Patience, Schedule, restore, train
    from bert_elmo_jax.train.metrics import write_report
    from bert_elmo_jax.train.parallel import RULES, kept_whole, make_mesh, over_mesh, over_pmap, shardings
    from bert_elmo_jax.train.run_guard import DIVERGED, STOPPED, only_process, same_run
    from bert_elmo_jax.train.step import State, make_evaluate, make_step, new_state

__all__ = [
    "DIVERGED",
    "RULES",
    "STOPPED",
    "Checkpoints",
    "Diverged",
    "Patience",
    "Schedule",
    "State",
    "kept_whole",
    "make_evaluate",
    "make_mesh",
    "make_step",
    "matmul_rate",
    "meet",
    "new_state",
    "only_process",
    "over_mesh",
    "over_pmap",
    "restore",
    "same_run",
    "shardings",
    "train",
    "write_report",
]

__getattr__ = lazy_names(__name__, __file__)
