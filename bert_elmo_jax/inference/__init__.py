"""The public face: `load` a model from any format, and use it."""

import dataclasses
from pathlib import Path
from typing import Literal

from bert_elmo_jax.encoders.encoded import Encoded
from bert_elmo_jax.encoders.rows import BadText
from bert_elmo_jax.families.bert.encoder import BertEncoder, Guess
from bert_elmo_jax.families.bert.forward import ForwardOutput
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.encoded import ElmoEncoded
from bert_elmo_jax.families.elmo.encoder import ElmoEncoder
from bert_elmo_jax.inference.detect import Format
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import write_run_directory
from bert_elmo_jax.inference.task_model import TaskModel
from bert_elmo_jax.inference.task_network import TaskNetwork, load_network
from bert_elmo_jax.networks import NetworkConfig
from bert_elmo_jax.text import Lexicon, WordVocabulary

__all__ = [
    "BadText",
    "BertEncoder",
    "ElmoEncoded",
    "ElmoEncoder",
    "Encoded",
    "ForwardOutput",
    "Guess",
    "TaskModel",
    "TaskNetwork",
    "load",
    "write_run_directory",
]


def load(
    path: str | Path,
    *,
    format: Format | None = None,
    lowercase: bool | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
    implementation: Literal["reference", "fused"] | None = None,
) -> BertEncoder | ElmoEncoder | TaskNetwork:
    """A BERT or an ELMo from a folder in any format (ours, Hugging Face's, Google's, AllenNLP's), or a hub name.

    Of Google's, a checkpoint's prefix will do as well. `format` decides where a folder holds two, `lowercase` where a
    BERT's vocabulary does not say whether it is uncased; a run directory says both itself. `dtype="bfloat16"` computes
    in half precision, `implementation="fused"` a BERT with the device's fused attention. Of a run that was fine-tuned
    it is a `TaskModel`, and of a task's own network a `TaskNetwork`, which can `predict`.

    >>> load("tests/goldens/bert_tiny").config.hidden_size, load("tests/goldens/elmo_tiny").config.cell_size
    (64, 48)
    """
    model = read_model(path, format=format, lowercase=lowercase)
    if isinstance(model.config, NetworkConfig):
        if implementation is not None or dtype != "float32":
            raise ValueError(
                f"{path} is a task's network, which computes in float32: leave out dtype and implementation"
            )
        return load_network(model, path)
    if isinstance(model.config, ElmoConfig):
        if implementation is not None:
            raise ValueError(f"{path} is an ELMo, which has no attention: leave out implementation={implementation!r}")
        assert model.tokenizer is None or isinstance(model.tokenizer, WordVocabulary)
        return ElmoEncoder(dataclasses.replace(model.config, dtype=dtype), model.params, model.tokenizer, str(path))
    assert not isinstance(model.tokenizer, WordVocabulary | Lexicon)
    config = dataclasses.replace(model.config, dtype=dtype, implementation=implementation or "reference")
    if model.task is not None:
        return TaskModel(config, model.params, model.tokenizer, str(path), model.task, model.features)
    return BertEncoder(config, model.params, model.tokenizer, str(path))
