"""Loading models and using them: `load`, encoders, predictions."""

from typing import TYPE_CHECKING

from bert_elmo_jax.lazy_imports import lazy_names

if TYPE_CHECKING:
    from bert_elmo_jax.encoders.encoded import Encoded
    from bert_elmo_jax.encoders.rows import BadText
    from bert_elmo_jax.families.fill_mask import Guess
    from bert_elmo_jax.families.forward import ForwardOutput
    from bert_elmo_jax.families.piece_encoder import PieceEncoder
    from bert_elmo_jax.inference.adapter_files import save_adapter
    from bert_elmo_jax.inference.load_model import load
    from bert_elmo_jax.inference.run_directory import write_run_directory
    from bert_elmo_jax.inference.save_model import save
    from bert_elmo_jax.inference.task_model import TaskModel

__all__, __getattr__ = lazy_names(__name__, __file__)
