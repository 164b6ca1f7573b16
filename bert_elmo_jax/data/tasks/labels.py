"""Labels and tags: collect them from training data, and turn them into ids."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int32

from bert_elmo_jax.data.tasks.examples import TaggedSentence, TextExample, a_number
from bert_elmo_jax.data.tasks.files import BadRow


def find_labels(examples: Sequence[TextExample]) -> list[str]:
    """Return the labels of training examples, sorted by value if all of them are numbers.

    >>> stars = [TextExample("…", None, label, None, "train.csv", 2) for label in ("10", "2", "10")]
    >>> find_labels(stars)
    ['2', '10']
    """
    labels = sorted(set(map(_label, examples)))
    if not examples:
        raise ValueError("no examples to find labels in; give a file with some")
    if len(labels) < 2:
        what = f"{labels[0]!r} is the label of all {len(examples)} examples, expected at least two labels"
        remedy = "check the column of the label, and that the file is not part of a file sorted by label"
        raise BadRow(examples[0].file, examples[0].line, what, remedy)
    return _sorted_by_value(labels)


def label_ids(examples: Sequence[TextExample], labels: Sequence[str]) -> Int32[np.ndarray, "N"]:
    """Return the index of each example's label in `labels`.

    >>> dev = [TextExample("…", None, "재미", None, "dev.csv", 2)]
    >>> label_ids(dev, ["노잼", "재미"]).tolist()
    [1]
    >>> label_ids(dev, ["0", "1"])
    Traceback (most recent call last):
    bert_elmo_jax.data.tasks.files.BadRow: dev.csv:2: the label '재미' is not in the training data ('0', '1'); correct \
it, or train on data that have it
    """
    names = list(map(_label, examples))
    return _ids("label", names, labels, ((example.file, example.line) for example in examples))


def find_tags(sentences: Sequence[TaggedSentence], *, entities: bool = False) -> list[str]:
    """Return the sorted tags of training sentences.

    With `entities`, each type gets every prefix in use, so that an I- that occurs only in the dev data is known.

    >>> sentence = TaggedSentence(("서울", "역", "밖"), ("B-LOC", "I-LOC", "B-PER"), "train.conll", (1, 2, 3), 0)
    >>> find_tags([sentence]), find_tags([sentence], entities=True)
    (['B-LOC', 'B-PER', 'I-LOC'], ['B-LOC', 'B-PER', 'I-LOC', 'I-PER', 'O'])
    """
    tags = {tag for sentence in sentences for tag in sentence.tags or ()}
    if not tags:
        raise ValueError("no tags in these sentences; read a file that has some, with tagged=True")
    if entities:
        inside = {tag.partition("-")[::2] for tag in tags if tag != "O"}
        prefixes = {prefix for prefix, _ in inside} | ({"B", "I"} if inside else set())
        tags |= {f"{prefix}-{kind}" if kind else prefix for prefix in prefixes for _, kind in inside} | {"O"}
    return _sorted_by_value(sorted(tags))


def tag_ids(sentence: TaggedSentence, tags: Sequence[str]) -> Int32[np.ndarray, "W"]:
    """Return the index of each word's tag in `tags`.

    >>> tag_ids(TaggedSentence(("서울",), ("B-LOC",), "dev.conll", (1,), 0), ["B-LOC", "O"]).tolist()
    [0]
    """
    return _ids("tag", sentence.tags or (), tags, ((sentence.file, line) for line in sentence.lines))


def _ids(
    kind: str, names: Sequence[str], known: Sequence[str], places: Iterable[tuple[str, int]]
) -> Int32[np.ndarray, "N"]:
    index = {name: number for number, name in enumerate(known)}
    for name, place in zip(names, places):
        if name not in index:
            shown = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
            what = f"the {kind} {name!r} is not in the training data ({shown})"
            raise BadRow(*place, what, "correct it, or train on data that have it")
    return np.array([index[name] for name in names], np.int32)


def _label(example: TextExample) -> str:
    if not isinstance(example.label, str):
        what = f"the label {example.label!r}, expected a name"
        raise BadRow(example.file, example.line, what, "read the file with its labels")
    return example.label


def _sorted_by_value(names: list[str]) -> list[str]:
    if any(a_number(name) is None for name in names):
        return names
    return [name for _, name in sorted(zip(map(float, names), names))]
