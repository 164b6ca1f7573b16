"""Training, independent of any model: losses, data and placement are functions passed in."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.train.averaged import check_average as check_average
    from bert_elmo_jax.train.averaged import write_average as write_average
    from bert_elmo_jax.train.checkpoint import Checkpoints as Checkpoints
    from bert_elmo_jax.train.checkpoint import meet as meet
    from bert_elmo_jax.train.devices import matmul_rate as matmul_rate
    from bert_elmo_jax.train.loop import Patience as Patience
    from bert_elmo_jax.train.loop import Schedule as Schedule
    from bert_elmo_jax.train.loop import restore as restore
    from bert_elmo_jax.train.loop import train as train
    from bert_elmo_jax.train.parallel import DEVICES as DEVICES
    from bert_elmo_jax.train.parallel import ONE_DEVICE as ONE_DEVICE
    from bert_elmo_jax.train.parallel import RULES as RULES
    from bert_elmo_jax.train.parallel import Parallel as Parallel
    from bert_elmo_jax.train.parallel import Placement as Placement
    from bert_elmo_jax.train.parallel import kept_whole as kept_whole
    from bert_elmo_jax.train.parallel import make_mesh as make_mesh
    from bert_elmo_jax.train.parallel import over_mesh as over_mesh
    from bert_elmo_jax.train.parallel import over_pmap as over_pmap
    from bert_elmo_jax.train.parallel import shardings as shardings
    from bert_elmo_jax.train.run_guard import DIVERGED as DIVERGED
    from bert_elmo_jax.train.run_guard import STOPPED as STOPPED
    from bert_elmo_jax.train.run_guard import Diverged as Diverged
    from bert_elmo_jax.train.run_guard import only_process as only_process
    from bert_elmo_jax.train.run_guard import record_free as record_free
    from bert_elmo_jax.train.run_guard import refuse_other_files as refuse_other_files
    from bert_elmo_jax.train.run_guard import same_run as same_run
    from bert_elmo_jax.train.step import State as State
    from bert_elmo_jax.train.step import Step as Step
    from bert_elmo_jax.train.step import make_evaluate as make_evaluate
    from bert_elmo_jax.train.step import make_step as make_step
    from bert_elmo_jax.train.step import new_state as new_state

__all__, __getattr__ = lazy_names(__name__, __file__)
