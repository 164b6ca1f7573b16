"""Weights in any foreign format, as a parameter tree with its configuration."""

from pathlib import Path
from typing import Any

from bert_elmo_jax.inference.detect import Format, detect, list_formats
from bert_elmo_jax.weights.parameter_tree import Report


def read_weights(
    path: str | Path, *, format: Format | None = None, config: Any = None, classifier: str | None = None
) -> tuple[dict[str, Any], Any, Report]:
    """Return the parameter tree, the configuration and the report of a folder in any format.

    >>> params, config, report = read_weights("tests/goldens/bert_tiny_tf")
    >>> params["encoder"]["embeddings"]["word"].shape, config.num_layers, report.heads
    ((200, 64), 3, ('mlm', 'nsp'))
    """
    format, formats = format or detect(path), list_formats()
    if format not in formats:
        raise ValueError(f"format={format!r} was given; expected one of {', '.join(map(repr, formats))}")
    family, reader = formats[format]
    if config is not None and not isinstance(config, family.config):
        raise ValueError(f"config= is {type(config).__name__}, but the weights in {path} need {family.config.__name__}")
    if classifier is not None and not reader.classifiers:
        raise ValueError(
            f"classifier={classifier!r} was given for {path}, but {reader.owner} has no classifier: leave it out"
        )
    config = config or reader.read_config(path)
    asked = {} if classifier is None else {"classifier": classifier}
    params, report = reader.read_weights(path, config=config, **asked)
    return params, config, report
