"""Training, independent of any model: losses, data and placement are functions passed in."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.train.checkpoint import Checkpoints, meet
    from bert_elmo_jax.train.evaluate import make_evaluate
    from bert_elmo_jax.train.loop import Diverged, Schedule, restore, train
    from bert_elmo_jax.train.parallel import Parallel, over_mesh, over_pmap
    from bert_elmo_jax.train.patience import Patience
    from bert_elmo_jax.train.report import write_report
    from bert_elmo_jax.train.run_guard import DIVERGED, STOPPED, only_process, same_run
    from bert_elmo_jax.train.sharding import RULES, kept_whole, make_mesh, place_batch, shardings
    from bert_elmo_jax.train.state import State, from_arrays, new_state, to_arrays
    from bert_elmo_jax.train.step import make_step
    from bert_elmo_jax.train.utilisation import matmul_rate

__all__ = [
    "DIVERGED",
    "RULES",
    "STOPPED",
    "Checkpoints",
    "Diverged",
    "Parallel",
    "Patience",
    "Schedule",
    "State",
    "from_arrays",
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
    "place_batch",
    "restore",
    "same_run",
    "shardings",
    "to_arrays",
    "train",
    "write_report",
]

__getattr__ = lazy_names(__name__, __file__)
