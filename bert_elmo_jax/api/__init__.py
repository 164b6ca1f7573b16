"""The public face: `load` a model from any format, and use it."""

import dataclasses
from pathlib import Path
from typing import Literal

from bert_elmo_jax.api.bert_encoder import BertEncoder, Guess
from bert_elmo_jax.api.encoded import Encoded
from bert_elmo_jax.api.forward import ForwardOutput
from bert_elmo_jax.api.read_model import read_model
from bert_elmo_jax.api.rows import BadText
from bert_elmo_jax.api.run_directory import write_run_directory
from bert_elmo_jax.interop import Format

__all__ = ["BadText", "BertEncoder", "Encoded", "ForwardOutput", "Guess", "load", "write_run_directory"]


def load(
    path: str | Path,
    *,
    format: Format | None = None,
    lowercase: bool | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
    implementation: Literal["reference", "fused"] = "reference",
) -> BertEncoder:
    """A model from a folder in any format (ours, Hugging Face's, Google's), a checkpoint's prefix, or a hub name.

    `format` decides where a folder holds two, `lowercase` where a vocabulary does not say whether it is uncased; a run
    directory says both itself. `dtype="bfloat16"` computes in half precision, `implementation="fused"` with the
    device's fused attention.

    >>> load("tests/goldens/bert_tiny").config.hidden_size
    64
    """
    model = read_model(path, format=format, lowercase=lowercase)
    config = dataclasses.replace(model.config, dtype=dtype, implementation=implementation)
    return BertEncoder(config, model.params, model.tokenizer, str(path))
