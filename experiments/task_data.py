"""The data that a fine-tuning config names, read and checked before anything else is done."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.task import Task, check_labels, read_examples, task_named, with_labels

LENGTH, QUESTION_LENGTH = 128, 384
OPTIONS = ("context", "stride", "question_length", "longest_answer")  # of a task; a config names those it has


class Data(NamedTuple):
    """A task with its labels, and the examples of its parts."""

    task: Task
    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]


def read_data(config: ConfigDict) -> Data:
    """Read all files of a run; labels are those of the training data, and the others must know no more."""
    missing = [name for name in ("task", "train", "dev") if not config[name]]
    if missing:
        raise ValueError(
            f"{', '.join(f'--{name}' for name in missing)} {'is' if len(missing) == 1 else 'are'} needed, such as "
            "--task=classification --train=my.csv --dev=dev.csv --text=review --label=stars"
        )
    task = task_named(
        config.task,
        text=config.text or None,
        pair=config.pair or None,
        label=config.label or None,
        file=config.train,
        **{name: config[name] for name in OPTIONS if name in config},
    )
    if task.context and task.kind != "tags":
        raise ValueError(f"config.context says nothing to {config.task}, whose examples are no words; leave it out")
    if task.kind != "questions" and task.stride < 1:
        raise ValueError(f"config.stride={task.stride}: expected 1 or more")
    train = read_examples(config.train, task, encoding=config.encoding)
    task = with_labels(task, train)
    dev, test = (
        read_examples(config[part], task, encoding=config.encoding) if config[part] else [] for part in ("dev", "test")
    )
    for examples in (dev, test):
        check_labels(task, examples)
        if task.kind == "regression" and len(examples) == 1:
            raise ValueError(f"{examples[0].file} has one example, of which there is no correlation; give two or more")
    return Data(task, train, dev, test)


def fitted(task: Task, config: ConfigDict, positions: int) -> Task:
    """The task with the length of its rows."""
    usual = QUESTION_LENGTH if task.kind == "questions" else LENGTH
    return dataclasses.replace(task, max_length=config.max_length or min(usual, positions))


def class_weights(asked: str, task: Task, train: Sequence[Any]) -> list[float] | None:
    """How much each label weighs: `balanced`, as much together as every other, or as is written label by label."""
    if not asked:
        return None
    if task.kind not in ("classification", "tags"):
        raise ValueError(
            f"config.class_weights={asked!r} says nothing to {task.name}, which has no labels; leave it out"
        )
    if asked == "balanced":
        found: Counter[Any] = Counter(
            chain.from_iterable(e.tags for e in train) if task.kind == "tags" else (e.label for e in train)
        )
        return [found.total() / (len(task.labels) * found[label]) if found[label] else 1.0 for label in task.labels]
    pairs = [part.rpartition("=")[::2] for part in asked.split(",")]
    try:
        given = {label: float(number) for label, number in pairs}
    except ValueError:
        given = {}
    if set(given) != set(task.labels) or len(pairs) != len(given) or not all(0 < w < 1e9 for w in given.values()):
        example = ",".join(f"{label}=1" for label in task.labels[:6])
        raise ValueError(
            f"config.class_weights={asked!r}: expected balanced, or a number above 0 for each of the "
            f"{len(task.labels)} labels, such as {example}{',…' if len(task.labels) > 6 else ''}"
        )
    return [given[label] for label in task.labels]
