"""Loading models and using them: `load`, encoders, predictions."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.encoders.encoded import Encoded as Encoded
    from bert_elmo_jax.encoders.rows import BadText as BadText
    from bert_elmo_jax.families.fill_mask import Guess as Guess
    from bert_elmo_jax.families.forward import ForwardOutput as ForwardOutput
    from bert_elmo_jax.families.piece_encoder import PieceEncoder as PieceEncoder
    from bert_elmo_jax.inference.adapter_files import save_adapter as save_adapter
    from bert_elmo_jax.inference.load_model import load as load
    from bert_elmo_jax.inference.run_directory import write_run_directory as write_run_directory
    from bert_elmo_jax.inference.save_model import save as save
    from bert_elmo_jax.inference.task_model import TaskModel as TaskModel

__all__, __getattr__ = lazy_names(__name__, __file__)
