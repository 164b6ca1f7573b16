"""The task of a released model: the head in its weights, and the labels that its `config.json` names."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from bert_elmo_jax.data.tasks.task import Kind, Task
from bert_elmo_jax.families.family import TASK_HEADS
from bert_elmo_jax.heads.sentence_head import ACTIVATIONS

KINDS: Mapping[str, Kind] = {"classify": "classification", "choice": "choice", "tag": "tags", "span": "questions"}
PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")
READER_LENGTH = 384  # pieces of a question and its context, in transformers' pipeline
LONGEST_ANSWER = 15  # pieces, there
UNNAMED = 2  # labels of a config.json that names none


def find_task(params: Mapping[str, Any], source: str, *, positions: int, extras: Mapping[str, Any]) -> Task | None:
    """Return the task of a model's head, or None if it has no head of a task.

    `extras` may have `labels`, `num_labels`, `problem_type`, `max_length`, the longest text of the tokenizer, and of a
    reranker `reranker`, its `prompt` and its `activation`, the name of a class, with the `activation_file` it is in.

    >>> import numpy as np
    >>> classifier = {"classify": {"kernel": np.zeros((8, 2))}}
    >>> find_task(classifier, "a folder", positions=64, extras={"labels": ["bad", "good"]}).labels
    ('bad', 'good')
    """
    head = next((name for name in TASK_HEADS if name in params), None)
    if head is None:
        return None
    kind = KINDS[head]
    labels: tuple[str, ...] = ()
    problem_type = extras.get("problem_type")
    if head in ("classify", "tag"):
        labels = _read_labels(params[head]["kernel"].shape[1], source, extras)
    if head == "classify":
        if problem_type not in (None, *PROBLEM_TYPES):
            raise ValueError(
                f"{source}: problem_type in config.json is {problem_type!r}; it is one of {', '.join(PROBLEM_TYPES)}"
            )
        if problem_type == "regression":
            kind, labels = "regression", labels if len(labels) > 1 else ()
    length = positions
    # Rerankers cut their pairs, and a model with one output may be one.
    reranker = extras.get("reranker") or extras.get("activation") is not None
    one_output = head == "classify" and params[head]["kernel"].shape[1] == 1
    if head in ("tag", "span") or one_output or reranker:
        length = min(positions, extras.get("max_length") or positions, READER_LENGTH if head == "span" else positions)
    return Task(
        "released", kind, labels=labels, max_length=length, question_length=length - length // 4,
        longest_answer=LONGEST_ANSWER, pipeline=True, activation=_read_activation(source, extras),
        multi_label=head == "classify" and problem_type == "multi_label_classification",
        prompt=extras.get("prompt", ""),
    )  # fmt: skip


def _read_activation(source: str, extras: Mapping[str, Any]) -> str:
    """Return the activation of a reranker from the name of its class, `torch.nn.modules.linear.Identity`."""
    name = extras.get("activation")
    activation = "" if name is None else str(name).rsplit(".", 1)[-1].lower()
    if activation and activation not in ACTIVATIONS:
        file = extras.get("activation_file", "config.json")
        raise ValueError(
            f"{source}: the activation of the scores in {file} is {name!r}; supported are {', '.join(ACTIVATIONS)}"
        )
    return activation


def _read_labels(outputs: int, source: str, extras: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the label of each output; raise if config.json has another number of labels."""
    labels: Sequence[str] | None = extras.get("labels")
    if labels is None:
        # Other formats than transformers' have no place for labels.
        if outputs > UNNAMED and "architectures" in extras and extras.get("num_labels") != outputs:
            raise ValueError(
                f"{source}: config.json has no id2label, and the head has {outputs} outputs: add id2label, the label "
                'of each output, as in {"0": "negative", "1": "positive"}'
            )
        labels = [f"LABEL_{number}" for number in range(outputs)]
        if outputs > 1:
            logging.getLogger(__name__).warning(
                "%s names no labels (id2label in config.json), so they are called %s", source, ", ".join(labels)
            )
    if len(labels) != outputs:
        raise ValueError(
            f"{source}: id2label in config.json names {len(labels)} labels ({', '.join(labels)}), and the head has "
            f"{outputs} outputs: they do not belong together; correct id2label"
        )
    if len(set(labels)) < len(labels):
        raise ValueError(f"{source}: id2label in config.json has a label twice: {', '.join(labels)}; rename one")
    return tuple(labels)
