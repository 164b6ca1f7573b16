"""Weight formats: pure maps of names and shapes, one file a format.

`read_weights` reads whatever `detect` finds; `huggingface_bert`, `google_bert` and `elmo_hdf5` do so for one format
each, and the first and the last write. `resolve` turns a hub name into a local path.
"""

from pathlib import Path
from types import ModuleType
from typing import Any

from bert_elmo_jax.families.bert import google as google_bert
from bert_elmo_jax.families.bert import huggingface as huggingface_bert
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.huggingface import Classifier
from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.inference.detect import Format, detect
from bert_elmo_jax.weights.hub import resolve
from bert_elmo_jax.weights.report import Report

__all__ = ["Format", "Report", "detect", "elmo_hdf5", "google_bert", "huggingface_bert", "read_weights", "resolve"]

# Who reads a format, and the configuration of what is in it.
READERS: dict[str, tuple[ModuleType, type[BertConfig] | type[ElmoConfig]]] = {
    "huggingface": (huggingface_bert, BertConfig),
    "google": (google_bert, BertConfig),
    "elmo": (elmo_hdf5, ElmoConfig),
}


def read_weights(
    path: str | Path,
    *,
    format: Format | None = None,
    config: BertConfig | ElmoConfig | None = None,
    classifier: Classifier | None = None,
) -> tuple[dict[str, Any], BertConfig | ElmoConfig, Report]:
    """Return the parameter tree, the configuration and the report of a folder in any format.

    >>> params, config, report = read_weights("tests/goldens/bert_tiny_tf")
    >>> params["encoder"]["embeddings"]["word"].shape, config.num_layers, report.heads
    ((200, 64), 3, ('mlm', 'nsp'))
    """
    format = format or detect(path)
    if format not in READERS:
        raise ValueError(f"format={format!r} was given; it is one of {', '.join(map(repr, READERS))}")
    reader, kind = READERS[format]
    if config is not None and not isinstance(config, kind):
        raise ValueError(f"config= is {type(config).__name__}, but the weights in {path} need {kind.__name__}")
    asked = {} if classifier is None else {"classifier": classifier}
    if asked and kind is ElmoConfig:
        raise ValueError(
            f"classifier={classifier!r} makes no sense for {path}: an ELMo has no classifier; leave it out"
        )
    config = config or reader.read_config(path)
    params, report = reader.read_weights(path, config=config, **asked)
    return params, config, report
