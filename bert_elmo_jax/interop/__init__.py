"""Weight formats: maps of names and shapes, one module per format.

`read_weights` reads any format. `huggingface_bert` and `elmo_hdf5` read and write one format each, `google_bert` only
reads. `resolve` turns a hub name into a local path.
"""

from pathlib import Path
from types import ModuleType
from typing import Any

from bert_elmo_jax.interop import elmo_hdf5, google_bert, huggingface_bert
from bert_elmo_jax.interop.detect import Format, detect
from bert_elmo_jax.interop.hub import resolve
from bert_elmo_jax.interop.huggingface_bert import Classifier
from bert_elmo_jax.interop.report import Report
from bert_elmo_jax.models.bert_config import BertConfig
from bert_elmo_jax.models.elmo_config import ElmoConfig

__all__ = ["Format", "Report", "detect", "elmo_hdf5", "google_bert", "huggingface_bert", "read_weights", "resolve"]

# The reader and the configuration class of each format.
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
    """Return the parameter tree, the configuration and the report for a folder in any format.

    >>> params, config, report = read_weights("tests/goldens/bert_tiny_tf")
    >>> params["encoder"]["embeddings"]["word"].shape, config.num_layers, report.heads
    ((200, 64), 3, ('mlm', 'nsp'))
    """
    format = format or detect(path)
    if format not in READERS:
        raise ValueError(f"format={format!r} was given; expected one of {', '.join(map(repr, READERS))}")
    reader, kind = READERS[format]
    if config is not None and not isinstance(config, kind):
        raise ValueError(f"config= is {type(config).__name__}, but the weights in {path} need {kind.__name__}")
    if classifier is not None and kind is ElmoConfig:
        raise ValueError(f"classifier={classifier!r} was given for {path}, but ELMo has no classifier: leave it out")
    config = config or reader.read_config(path)
    options = {} if classifier is None else {"classifier": classifier}
    params, report = reader.read_weights(path, config=config, **options)
    return params, config, report
