"""The public face: `load` a model from any format, and use it."""

import dataclasses
from pathlib import Path
from typing import Literal

from bert_elmo_jax.api.bert_encoder import BertEncoder, ForwardOutput, Guess
from bert_elmo_jax.api.encoded import Encoded
from bert_elmo_jax.api.run_directory import is_run_directory, read_run_directory, write_run_directory
from bert_elmo_jax.interop import Format, read_weights, resolve
from bert_elmo_jax.text import Tokenizer, load_tokenizer

__all__ = ["BertEncoder", "Encoded", "ForwardOutput", "Guess", "load", "write_run_directory"]


def load(
    path: str | Path,
    *,
    format: Format | None = None,
    lowercase: bool | None = None,
    dtype: Literal["float32", "bfloat16"] = "float32",
    implementation: Literal["reference", "fused"] = "reference",
) -> BertEncoder:
    """A model from a folder in any format (ours, Hugging Face's, Google's), a checkpoint's prefix, or a hub name.

    `format` decides where a folder holds two, `lowercase` where a vocabulary does not say whether it is uncased.
    `dtype="bfloat16"` computes in half precision, `implementation="fused"` with the device's fused attention.

    >>> load("tests/goldens/bert_tiny").config.hidden_size
    64
    """
    found = resolve(path)
    if is_run_directory(found):
        run = read_run_directory(found)
        config, params, tokenizer = run.config, run.params, run.tokenizer
    else:
        params, config, report = read_weights(found, format=format)
        report.raise_if_unusable()
        tokenizer = find_tokenizer(found if found.is_dir() else found.parent, lowercase)
    config = dataclasses.replace(config, dtype=dtype, implementation=implementation)
    return BertEncoder(config, params, tokenizer, str(path))


def find_tokenizer(folder: Path, lowercase: bool | None) -> Tokenizer | None:
    """The tokenizer beside the weights, where there is one."""
    names = ("vocab.txt", "tokenizer.json", "*.model")
    return load_tokenizer(folder, lowercase=lowercase) if any(any(folder.glob(name)) for name in names) else None
