"""The predictions of simple baselines, which a trained model must beat to have learned something."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.data.tasks.word_rows import words_of_sentences
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags, Tree
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.runs.bag_of_words import compare_words, fit_and_predict

Baseline = Callable[[Sequence[Any]], list[Prediction]]  # examples -> predictions
BAG = Phrase("bag of words")


def fit_baselines(task: Task, train: Sequence[Any]) -> Mapping[Phrase, Baseline]:
    """Return the baselines of a task by name, fitted to its training data; {} where none is cheap.

    >>> from bert_elmo_jax.data.tasks import TextExample
    >>> task = Task("sst2", "classification", labels=("0", "1"))
    >>> train = [TextExample(text, None, label, None, "…", 2) for text, label in (("good", "1"), ("fine", "1"))]
    >>> list(fit_baselines(task, train))
    ["always '1'", 'bag of words']
    """
    if task.kind == "classification" and not task.multi_label:
        label = _most_frequent(example.label for example in train)
        always = Label(label, 1.0, {})
        return {_always(label): lambda examples: [always] * len(examples), BAG: _classify(task, train)}
    if task.kind == "regression":
        return {BAG: _regress(train)}
    if task.kind == "sentences":
        return {BAG: lambda examples: [Number(compare_words(example.text, example.pair)) for example in examples]}
    if task.kind == "choice":
        place = _most_frequent(example.label for example in train)
        return {Phrase("always choice {number}", number=place + 1): lambda examples: _choose(place, examples)}
    if task.kind == "tags":
        tag = _most_frequent(tag for example in train for tag in example.tags)
        words = Phrase("the usual tag of each word")
        return {_always(tag): lambda examples: _tag({}, tag, examples), words: _tag_words(train, tag)}
    if task.kind == "trees":
        return {Phrase("each word's neighbour is its head"): _attach(train)}
    if task.kind == "questions" and task.unanswerable:
        nothing = AnswerSpan("", 0, 0, 1.0, (), 0.0)
        return {Phrase("always no answer"): lambda examples: [nothing] * len(examples)}
    return {}


def _always(label: str) -> Phrase:
    return Phrase("always '{label}'", label=label)


def _most_frequent(values: Any) -> Any:
    return Counter(values).most_common(1)[0][0]


def _texts(example: Any) -> list[str]:
    return [example.text] if example.pair is None else [example.text, example.pair]


def _classify(task: Task, train: Sequence[Any]) -> Baseline:
    targets = np.array([[example.label == label for label in task.labels] for example in train], np.float32)

    def predict(examples: Sequence[Any]) -> list[Prediction]:
        scores = fit_and_predict([*map(_texts, train)], targets, [*map(_texts, examples)])
        return [Label(task.labels[n], 1.0, {}) for n in scores.argmax(axis=1)]

    return predict


def _regress(train: Sequence[Any]) -> Baseline:
    targets = np.array([[example.label] for example in train], np.float32)

    def predict(examples: Sequence[Any]) -> list[Prediction]:
        scores = fit_and_predict([*map(_texts, train)], targets, [*map(_texts, examples)])
        return [Number(float(score)) for score in scores[:, 0]]

    return predict


def _choose(place: int, examples: Sequence[Any]) -> list[Prediction]:
    return [Choice(place, example.choices[place], (1.0,) * len(example.choices)) for example in examples]


def _usual(train: Sequence[Any], name: str) -> dict[str, str]:
    """Return the most frequent tag or relation of each word, composed (NFC)."""
    counts: dict[str, Counter[str]] = {}
    for example, words in zip(train, words_of_sentences(train)):
        for word, value in zip(words, getattr(example, name)):
            counts.setdefault(word, Counter())[value] += 1
    return {word: _most_frequent(values.elements()) for word, values in counts.items()}


def _tag_words(train: Sequence[Any], unknown: str) -> Baseline:
    tag_of = _usual(train, "tags")
    return lambda examples: _tag(tag_of, unknown, examples)


def _attach(train: Sequence[Any]) -> Baseline:
    """Every word depends on the next one, or on the one before where that is right more often."""
    steps = Counter(head - n for one in train for n, head in enumerate(one.heads, start=1) if abs(head - n) == 1)
    forward = steps[1] >= steps[-1]
    relation_of = _usual(train, "relations")
    root = _most_frequent(name for one in train for head, name in zip(one.heads, one.relations) if head == 0)
    other = _most_frequent(name for one in train for name in one.relations)

    def predict(examples: Sequence[Any]) -> list[Prediction]:
        trees = []
        for example, words in zip(examples, words_of_sentences(examples)):
            count = len(words)
            heads = [*range(2, count + 1), 0] if forward else [*range(count)]
            names = [relation_of.get(word, other) if head else root for word, head in zip(words, heads)]
            trees.append(Tree(example.words, tuple(heads), tuple(names)))
        return [*trees]

    return predict


def _tag(tag_of: Mapping[str, str], unknown: str, examples: Sequence[Any]) -> list[Prediction]:
    tags = [tuple(tag_of.get(word, unknown) for word in words) for words in words_of_sentences(examples)]
    return [Tags(example.words, each, (1.0,) * len(each)) for example, each in zip(examples, tags)]
