"""What each network of a task is told by its config, beside what all of them are."""

from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.schemes import find_scheme
from bert_elmo_jax.runs.task_data import Data


def tagger(config: ConfigDict, data: Data) -> dict[str, Any]:
    """The sizes of a tagger, and the scheme of its tags."""
    scheme = find_scheme(data.train) if data.task.entities else ""
    return {"lstm_layers": config.lstm_layers, "lstm_size": config.lstm_size, "dropout": config.dropout,
            "output": config.output, "scheme": scheme}  # fmt: skip


def bcn(config: ConfigDict, data: Data) -> dict[str, Any]:
    """The sizes of a biattentive classification network."""
    return {"feed_size": config.feed_size, "lstm_size": config.lstm_size, "word_dropout": config.word_dropout,
            "dropout": config.dropout, "pairs": data.task.pairs}  # fmt: skip


def esim(config: ConfigDict, data: Data) -> dict[str, Any]:
    """The sizes of an ESIM."""
    return {"lstm_size": config.lstm_size, "dropout": config.dropout}


def bidaf(config: ConfigDict, data: Data) -> dict[str, Any]:
    """The sizes of a reader, and whether some questions have no answer."""
    for name, least in (("max_length", 2), ("longest_answer", 1)):
        if config[name] < least:
            raise ValueError(f"config.{name}={config[name]}: a reader needs {least} or more words")
    return {"lstm_size": config.lstm_size, "dropout": config.dropout, "unanswerable": data.task.unanswerable}


SIZES: Mapping[str, Callable[[ConfigDict, Data], dict[str, Any]]] = {
    "tagger": tagger,
    "bcn": bcn,
    "esim": esim,
    "bidaf": bidaf,
}
