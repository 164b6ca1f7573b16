"""The data that a fine-tuning config names, read and checked before anything else is done."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.examples import a_number
from bert_elmo_jax.data.tasks.task import Task, check_labels, read_examples, task_named, with_labels
from bert_elmo_jax.runs.starting_weights import say

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
            "--task=classification --train=my.csv --dev=dev.csv --text=review --label=stars (--dev=0.1: of --train)"
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
    share = share_of(config.dev)
    files = {"dev": None if share else config.dev, "test": config.test}
    dev, test = (read_examples(file, task, encoding=config.encoding) if file else [] for file in files.values())
    if share:
        train, dev = kept_aside(train, task, share)
        say(f"--dev={config.dev}: by a fixed shuffle, {len(dev):,} examples of {config.train} are kept aside; "
            f"{len(train):,} are trained on")  # fmt: skip
    for examples in (dev, test):
        check_labels(task, examples)
        if task.kind == "regression" and len(examples) == 1:
            raise ValueError(f"{examples[0].file} has one example, of which there is no correlation; give two or more")
    return Data(task, shared(train, config.share), dev, test)


def share_of(dev: str) -> float | None:
    """The share of the training examples that dev asks for; None where it names a file.

    >>> share_of("0.1"), share_of("dev.csv")
    (0.1, None)
    """
    share = a_number(dev)
    if share is not None and not 0 < share < 1:
        raise ValueError(f"--dev={dev}: expected a file, or a share of --train above 0 and below 1, such as 0.1")
    return share


def kept_aside(examples: Sequence[Any], task: Task, share: float) -> tuple[Sequence[Any], Sequence[Any]]:
    """What is trained on, and a share of the examples for dev: of a fixed shuffle the first, each in its order.

    Questions about one context stay together, and so do the sentences of a document that are read with it.

    >>> train, dev = kept_aside(range(100), task_named("sst2"), 0.1)
    >>> len(train), len(dev), set(train) & set(dev), dev == kept_aside(range(100), task_named("sst2"), 0.1)[1]
    (90, 10, set(), True)
    """
    groups: dict[Any, list[int]] = {}
    for n, example in enumerate(examples):
        together = example.context if task.kind == "questions" else example.document if task.context else n
        groups.setdefault(together, []).append(n)
    every, chosen = list(groups.values()), set[int]()
    for n in np.random.default_rng(0).permutation(len(every)):
        if len(chosen) >= round(share * len(examples)):
            break
        chosen.update(every[n])
    least = 2 if task.kind == "regression" else 1
    if not least <= len(chosen) < len(examples):
        raise ValueError(
            f"--dev={share:g} of {len(examples):,} examples would be {len(chosen)} of them: use another share, or give "
            "a file"
        )
    train, dev = ([e for n, e in enumerate(examples) if (n in chosen) == aside] for aside in (False, True))
    return train, dev


def shared(examples: Sequence[Any], share: float) -> Sequence[Any]:
    """A share of the examples, in their order: of a fixed shuffle the first, so that more of them are those and others.

    >>> [len(shared(range(1000), share)) for share in (0.001, 0.25, 1.0)]
    [1, 250, 1000]
    >>> set(shared(range(9), 0.3)) < set(shared(range(9), 0.6))
    True
    """
    if not 0 < share <= 1:
        raise ValueError(f"config.share={share}: expected a share of the training examples, above 0 and at most 1")
    chosen = np.random.default_rng(0).permutation(len(examples))[: max(1, round(share * len(examples)))]
    return examples if share == 1 else [examples[n] for n in sorted(chosen.tolist())]


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
