"""The kinds of models for a task: an encoder with a head, a task network, a classifier of documents."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.report.language import Translate
from bert_elmo_jax.runs.adaptation import adapt_encoder, check_adaptation
from bert_elmo_jax.runs.language_model import check_stages, describe_stages, tune_language_models
from bert_elmo_jax.runs.prepared_task import PreparedTask
from bert_elmo_jax.runs.trainable import Section
from bert_elmo_jax.runs.with_documents import BACKWARD, prepare_documents, start_documents
from bert_elmo_jax.runs.with_head import check_unread, prepare_head, start_head
from bert_elmo_jax.runs.with_network import prepare_network, start_network


class TaskKind(NamedTuple):
    """One kind of model for a task, by its functions.

    `start(config, init, tokenizer)` returns a model without weights of the task, which depends on the `start_fields` of
    the config; `prepare(config, data, start)` makes it ready for training. `check(config, settings)` raises for a
    config, or settings of a grid, that contradict themselves. `first_stages(config, workdir, data, start, parallel,
    language, configs)` checks the configs of all runs, trains the model on texts without labels, reports it in a
    language, and returns it with an exit status.
    `companions(start)` are models that are trained first, in folders of these names. `sections(workdir, translate)`
    belong to the report.
    """

    start: Callable[[ConfigDict, str | None, str | None], Any]
    prepare: Callable[..., PreparedTask]
    start_fields: tuple[str, ...] = ()
    check: Callable[[ConfigDict, Sequence[Mapping[str, Any]]], object] = lambda config, settings: None
    first_stages: Callable[..., tuple[Any, int]] = lambda config, workdir, data, start, *options: (start, 0)
    companions: Callable[[Any], Mapping[str, Any]] = lambda start: {}
    sections: Callable[[Path, Translate], Sequence[Section]] = lambda workdir, translate: ()


HEAD = TaskKind(
    start_head, prepare_head, ("preset", "dtype", "attention", "dropout", "attention_dropout"), check=check_unread
)
NETWORK = TaskKind(start_network, prepare_network, check=check_adaptation, first_stages=adapt_encoder)
DOCUMENTS = TaskKind(
    start_documents, prepare_documents, check=check_stages, first_stages=tune_language_models,
    companions=lambda start: {} if start.other is None else {BACKWARD: start.other}, sections=describe_stages,
)  # fmt: skip


def find_kind(config: ConfigDict) -> TaskKind:
    """Return the kind of model that a config trains."""
    if "documents" in config:
        return DOCUMENTS
    return NETWORK if "network" in config else HEAD
