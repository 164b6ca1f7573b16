"""Read and check the data of a fine-tuning config, and count the steps that they take."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.examples import a_number
from bert_elmo_jax.data.tasks.files import BadRow, describe_skipped, stop
from bert_elmo_jax.data.tasks.sentence_files import OF_SCORES
from bert_elmo_jax.data.tasks.tables import find_format
from bert_elmo_jax.data.tasks.task import (
    Task,
    check_labels,
    read_examples,
    task_named,
    with_labels,
    with_spelling,
    with_top_score,
)
from bert_elmo_jax.runs.start_run import say

SCORED = ("regression", "sentences")  # kinds that are evaluated by a correlation
# Fields of tasks that a config may have.
OPTIONS = ("context", "stride", "question_length", "longest_answer", "both_orders", "tag_column")


SMALL_DEV = 20  # rows; below, one row is worth more than 5 points
SHARED = 0.2  # of the development data; with fewer texts that are also trained on, the score still says something
SHOWN = 5  # labels of a hint
RATED = ("star", "rating", "score", "rate", "별점", "평점", "점수")  # in the names of columns of ratings


class Data(NamedTuple):
    """A task with its labels, and its examples."""

    task: Task
    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]
    skipped: Sequence[BadRow] = ()  # the rows of all files that cannot be read, with --on_bad=skip


class Length(NamedTuple):
    """The steps of a run, of an epoch, and between evaluations and checkpoints."""

    steps: int
    epoch: int
    eval_every: int
    checkpoint_every: int


def read_data(config: ConfigDict) -> Data:
    """Read all files of a run; a task has the labels of its training data."""
    missing = [name for name in ("task", "train", "dev") if not config[name]]
    if missing:
        such = "--task=classification --train=my.csv --dev=dev.csv --text=review --label=stars (--dev=0.1: of --train)"
        flags, verb = ", ".join(f"--{name}" for name in missing), "is" if len(missing) == 1 else "are"
        raise ValueError(f"{flags} {verb} needed, such as {such}")
    columns = {name: config[name] or None for name in ("text", "pair", "label")}
    options = {name: config[name] for name in OPTIONS if config.get(name) is not None}
    if config.task == "sentences":
        options |= {name: config.sentences[name] for name in ("loss", "top_score")}
    task = task_named(config.task, **columns, file=config.train, **options)
    if task.context and task.kind != "tags":
        raise ValueError(f"config.context is for tasks with words, and {config.task} has texts; leave it out")
    if task.both_orders and not (task.pairs and task.kind in ("classification", "regression")):
        raise ValueError(
            f"config.both_orders is for pairs of texts with a label or a score, and the task {config.task} has none: "
            "leave it out"
        )
    on_bad, skipped = config.get("on_bad", "stop"), list[BadRow]()
    if on_bad not in ("stop", "skip"):
        raise ValueError(f"config.on_bad={on_bad!r} is not known; it is one of stop, skip")

    def read(file: str) -> Sequence[Any]:
        bad_rows: list[BadRow] = []
        options = {"encoding": config.encoding, "on_bad": stop if on_bad == "stop" else bad_rows.append}
        examples = read_examples(file, task, **options)
        if bad_rows:
            say(f"warning: {describe_skipped(bad_rows, len(examples) + len(bad_rows), file)}")
            skipped.extend(bad_rows)
        return examples

    train = read(config.train)
    task = with_labels(task, train)
    train = with_spelling(task, train)
    share = parse_share(config.dev)
    files = (None if share else config.dev, config.test)
    dev, test = (with_spelling(task, read(file)) if file else [] for file in files)
    if share:
        train, dev = hold_out(train, task, share)
        say(f"--dev={config.dev}: {len(dev):,} examples of {config.train} are held out by a fixed shuffle; "
            f"{len(train):,} are trained on")  # fmt: skip
    for examples in (dev, test):
        check_labels(task, examples)
        if task.kind in SCORED and len(examples) == 1:
            raise ValueError(f"{examples[0].file} has one example, but a correlation needs two; give more")
        scores = {example.label for example in examples} if task.kind in SCORED else set()
        if len(scores) == 1 and None not in scores:
            problem = f"{examples[0].file}: {examples[0].label} is the score of all {len(examples):,} examples"
            raise ValueError(f"{problem}, but a correlation needs different ones; check the column, or give others")
    if task.kind == "sentences":
        task = with_top_score(task, train if task.loss in OF_SCORES else dev)
        say(f"loss {task.loss}; scores are divided by {task.top_score:g}")
    for hint in find_hints(config, task, train, dev):
        say(f"warning: {hint}")
    return Data(task, take_share(train, config.share), dev, test, skipped)


def find_hints(config: ConfigDict, task: Task, train: Sequence[Any], dev: Sequence[Any]) -> Iterator[str]:
    """Yield hints for users: labels that may be unintended, development data that say little about new texts."""
    if config.task == "classification" and (alike := find_similar_labels(task.labels)):
        yield f"the labels {_list_labels(alike)} look alike, but each is a label of its own: write them in one way"
    if config.task == "classification" and are_ratings(task.labels, config.label or ""):
        yield (
            f"the labels are the numbers {task.labels[0]} to {task.labels[-1]}, and a classifier does not know that "
            f"{task.labels[0]} is nearer to {task.labels[1]} than to {task.labels[-1]}: if they are ratings, "
            "--task=regression predicts a number"
        )
    if 0 < len(dev) < SMALL_DEV and task.kind in ("classification", "choice", "questions"):
        units = {"questions": "question"}.get(task.kind, "row")
        yield (
            f"the development data have {len(dev)} {units}{'s'[: len(dev) != 1]}: one {units} is worth "
            f"{100 / len(dev):.1f} points of the score, so it says little about which model is best; hold out "
            f"more: {SMALL_DEV} {units}s at least, better some hundred"
        )
        if task.kind == "classification" and (absent := find_absent_labels(task, dev)):
            yield f"no row of the development data has the label {_list_labels(absent, 'or')}: hold out more"
    elif 0 < len(dev) < SMALL_DEV and task.kind in SCORED:
        yield f"the correlation is computed on {len(dev)} examples, too few to compare models by: hold out more"
    if task.kind == "classification" and (absent := find_absent_labels(task, train)):
        yield (
            f"all rows with the label {_list_labels(absent, 'or')} were held out, so it is not learned: give more rows "
            "with it, or a file as --dev"
        )
    if config.task in ("classification", "regression"):
        quoted = sum(len(example.text) > 1 and example.text[0] == example.text[-1] == '"' for example in train)
        if find_format(config.train) == "tsv" and quoted > len(train) / 2:
            yield (
                f"{quoted:,} of {len(train):,} texts are in quotation marks, which belong to the text in a .tsv: if "
                "they are not meant, save the file as .csv"
            )
        texts = {(example.text, example.pair) for example in train}
        repeated = sum((example.text, example.pair) in texts for example in dev)
        if repeated > SHARED * len(dev):
            yield (
                f"{repeated:,} of the {len(dev):,} texts of the development data are in the training data, too, so the "
                "score says little about new texts: remove rows that occur twice"
            )


def find_absent_labels(task: Task, examples: Sequence[Any]) -> list[str]:
    """Return the labels of a task that no example has."""
    present = {example.label for example in examples}
    return [label for label in task.labels if label not in present]


def find_similar_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels that differ from another one only in capitals, spaces or the way a number is written.

    >>> find_similar_labels(["Good", "bad", "good", "1", "1.0", "2"]), find_similar_labels(["0", "1"])
    (['Good', 'good', '1', '1.0'], [])
    """
    groups: dict[Any, list[str]] = {}
    for label in labels:
        number = a_number(label)
        groups.setdefault("".join(label.casefold().split()) if number is None else number, []).append(label)
    return [label for group in groups.values() if len(group) > 1 for label in group]


def _list_labels(labels: Sequence[str], conjunction: str = "and") -> str:
    """Return labels as text, the first few of many.

    >>> _list_labels(["a", "b"]), _list_labels(["1", "2", "3", "4", "5", "6", "7"], "or")
    ("'a' and 'b'", "'1' or '2' or '3' or '4' or '5' or 2 more")
    """
    more = len(labels) - SHOWN
    return f" {conjunction} ".join([*map(repr, labels[:SHOWN]), *([f"{more} more"] if more > 0 else [])])


def are_ratings(labels: Sequence[str], column: str = "") -> bool:
    """Return True for labels that look like ratings: 1 to 5, 1 to 10, half points; or a column called so.

    Numbers of classes usually begin with 0, or are not as many as stars.

    >>> [are_ratings([str(n) for n in range(first, last + 1)]) for first, last in ((1, 5), (1, 10), (0, 4), (1, 4))]
    [True, True, False, False]
    >>> are_ratings(["0.5", "1.0", "1.5"]), are_ratings(["0", "1"], "stars"), are_ratings(["1", "2", "3"], "stars")
    (True, False, True)
    """
    numbers = [number for label in labels if (number := a_number(label)) is not None]
    if len(numbers) < max(3, len(labels)):
        return False
    called = any(word in column.casefold() for word in RATED)
    if called or any(number != int(number) for number in numbers):
        return True
    return min(numbers) == 1 and max(numbers) in (5, 7, 10) and len(numbers) >= 4


def parse_share(dev: str) -> float | None:
    """Return the share of the training examples that `--dev` holds out, or None if it is a file.

    >>> (parse_share("0.1"), parse_share("dev.csv"))
    (0.1, None)
    """
    share = a_number(dev.removesuffix("%"))
    if share is not None and dev.endswith("%"):
        raise ValueError(f"--dev={dev}: a share is written as a number below 1, such as --dev={share / 100:g}")
    if share is not None and not 0 < share < 1:
        raise ValueError(f"--dev={dev}: expected a file, or a share of --train above 0 and below 1, such as 0.1")
    return share


def hold_out(examples: Sequence[Any], task: Task, share: float) -> tuple[Sequence[Any], Sequence[Any]]:
    """Split examples by a fixed shuffle, in order; questions on a context and sentences of a document stay together.

    >>> train, dev = hold_out(range(100), task_named("sst2"), 0.1)
    >>> (len(train), len(dev), set(train) & set(dev), dev == hold_out(range(100), task_named("sst2"), 0.1)[1])
    (90, 10, set(), True)
    """
    groups: dict[Any, list[int]] = {}
    for n, example in enumerate(examples):
        together = example.context if task.kind == "questions" else example.document if task.context else n
        groups.setdefault(together, []).append(n)
    every, chosen = list(groups.values()), set[int]()
    if len(every) == 1 and task.kind in ("tags", "trees"):
        whole = "document, which is not divided" if task.context else "sentence: a blank line ends a sentence"
        raise ValueError(f"--dev={share:g}: the training data are one {whole}; give a file as --dev")
    for n in np.random.default_rng(0).permutation(len(every)):
        if len(chosen) >= round(share * len(examples)):
            break
        chosen.update(every[n])
    least = 2 if task.kind in SCORED else 1
    if not least <= len(chosen) < len(examples):
        would = f"would be {len(chosen)} of them: use another share, or give a file"
        raise ValueError(f"--dev={share:g} of {len(examples):,} examples {would}")
    train, dev = ([e for n, e in enumerate(examples) if (n in chosen) == in_dev] for in_dev in (False, True))
    return train, dev


def take_share(examples: Sequence[Any], share: float) -> Sequence[Any]:
    """Return a share of the examples, in order; a larger share contains a smaller one.

    >>> [len(take_share(range(1000), share)) for share in (0.001, 0.25, 1.0)]
    [1, 250, 1000]
    >>> set(take_share(range(9), 0.3)) < set(take_share(range(9), 0.6))
    True
    """
    chosen = np.random.default_rng(0).permutation(len(examples))[: max(1, round(share * len(examples)))]
    return examples if share == 1 else [examples[n] for n in sorted(chosen.tolist())]


def count_steps(config: ConfigDict, rows: int) -> Length:
    """Return the length of a run on training data of so many rows.

    >>> config = ConfigDict({"epochs": 2.5, "batch_size": 8, "eval_every": 0, "checkpoint_every": 0})
    >>> repr(count_steps(config, 60))
    'Length(steps=20, epoch=8, eval_every=8, checkpoint_every=8)'
    """
    epoch = -(-rows // config.batch_size)
    steps = round(config.epochs * epoch)
    eval_every = config.eval_every or epoch
    checkpoint_every = config.checkpoint_every or eval_every
    if steps < 1 or min(eval_every, checkpoint_every) < 1:
        raise ValueError(f"config.epochs={config.epochs} of {epoch} steps is less than a step: use more epochs")
    if eval_every % checkpoint_every:
        why = "the best model could not be kept; let config.checkpoint_every divide config.eval_every"
        raise ValueError(f"an evaluation every {eval_every} steps and a checkpoint every {checkpoint_every}: {why}")
    return Length(steps, epoch, eval_every, checkpoint_every)


def class_weights(setting: str, task: Task, train: Sequence[Any]) -> list[float] | None:
    """Return the weight of each label: `balanced`, inversely to its frequency, or as `asked` label by label."""
    if not setting:
        return None
    if task.kind not in ("classification", "tags"):
        raise ValueError(f"config.class_weights={setting!r} is for labels, and {task.name} has none; leave it out")
    if setting == "balanced":
        tagged = task.kind == "tags"
        counts = Counter[Any](chain.from_iterable(e.tags for e in train) if tagged else (e.label for e in train))
        return [counts.total() / (len(task.labels) * counts[label]) if counts[label] else 1.0 for label in task.labels]
    pairs = [part.rpartition("=")[::2] for part in setting.split(",")]
    try:
        weights = {label: float(number) for label, number in pairs}
    except ValueError:
        weights = {}
    if set(weights) != set(task.labels) or len(pairs) != len(weights) or not all(0 < w < 1e9 for w in weights.values()):
        example = ",".join(f"{label}=1" for label in task.labels[:6])
        raise ValueError(
            f"config.class_weights={setting!r}: expected balanced, or a number above 0 for each of the "
            f"{len(task.labels)} labels, such as {example}{',…' if len(task.labels) > 6 else ''}"
        )
    return [weights[label] for label in task.labels]
