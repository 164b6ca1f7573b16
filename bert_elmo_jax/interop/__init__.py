"""Weight formats: pure maps of names and shapes, one file a format.

`read_weights` reads whatever `detect` finds; `huggingface_bert` and `google_bert` do so for one format each, and the
former writes. `resolve` turns a hub name into a local path.
"""

from pathlib import Path
from typing import Any

from bert_elmo_jax.interop import google_bert, huggingface_bert
from bert_elmo_jax.interop.detect import Format, detect
from bert_elmo_jax.interop.hub import resolve
from bert_elmo_jax.interop.huggingface_bert import Classifier
from bert_elmo_jax.interop.report import Report
from bert_elmo_jax.models.bert_config import BertConfig

__all__ = ["Format", "Report", "detect", "google_bert", "huggingface_bert", "read_weights", "resolve"]


def read_weights(
    path: str | Path,
    *,
    format: Format | None = None,
    config: BertConfig | None = None,
    classifier: Classifier | None = None,
) -> tuple[dict[str, Any], BertConfig, Report]:
    """Return the parameter tree, the configuration and the report of a folder in any format.

    >>> params, config, report = read_weights("tests/goldens/bert_tiny_tf")
    >>> params["encoder"]["embeddings"]["word"].shape, config.num_layers, report.heads
    ((200, 64), 3, ('mlm', 'nsp'))
    """
    format = format or detect(path)
    if format == "huggingface":
        config = config or huggingface_bert.read_config(path)
        params, report = huggingface_bert.read_weights(path, config=config, classifier=classifier)
    elif format == "google":
        config = config or google_bert.read_config(path)
        params, report = google_bert.read_weights(path, config=config, classifier=classifier or "classify")
    else:
        raise ValueError(f"format={format!r} was given; it is 'huggingface' or 'google'")
    return params, config, report
