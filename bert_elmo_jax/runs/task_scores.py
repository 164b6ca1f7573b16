"""Scores of a task's predictions, as its official scorer computes them, and the most confident mistakes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from bert_elmo_jax.data.tasks.examples import Question
from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.evals import entities, glue, squad
from bert_elmo_jax.inference.predictions import AnswerSpan, Choice, Label, Number, Prediction, Tags

NEVER = 1e9  # larger than any score


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction: file and line, text, the right answer, the predicted one, and its probability.

    For a regression `sure` is the size of the error.
    """

    where: str
    text: str
    right: str
    predicted: str
    sure: float


def score_name(task: Task) -> str:
    """Return the name of the score that chooses the best model."""
    if task.kind == "tags":
        return "f1" if task.entities else "accuracy"
    if task.kind == "questions":
        return "best_f1" if task.unanswerable else "f1"  # with the threshold for no answer that is best on dev
    return glue.TASK_METRICS[_find_metrics(task)][0]


def _find_metrics(task: Task) -> str:
    """Return the key of the task in `evals.glue.TASK_METRICS`."""
    if task.name in ("mrpc", "qqp") and set(task.labels) != {"0", "1"}:
        return "classification"
    return task.name if task.name in glue.TASK_METRICS else task.kind


def figures_of(task: Task, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, float]:
    """Return the scores of predictions, as the task's official scorer computes them.

    For questions that may have no answer, `null_threshold` is the best threshold for these predictions.
    """
    if task.kind == "questions":
        figures = _answers(task, examples, predictions)
        return {name: float(value) for name, value in figures.items() if "total" not in name and name != "missing"}
    if task.kind == "tags":
        gold, found = [list(e.tags) for e in examples], [list(p.tags) for p in predictions]
        if task.entities:
            scores = entities.score(gold, found)
            return {name: scores[name] for name in ("f1", "precision", "recall", "accuracy")}
        return {"accuracy": glue.accuracy(list(chain(*gold)), list(chain(*found)))}
    right: list[Any] = [example.label for example in examples]
    given: list[Any] = [_value(prediction) for prediction in predictions]
    name = _find_metrics(task)
    if task.kind == "classification" and any(metric == "f1" for metric in glue.TASK_METRICS[name]):
        right, given = ([int(label) for label in side] for side in (right, given))
    figures = glue.score(name, right, given)
    if task.kind == "classification" and name != "classification":
        figures.setdefault("accuracy", glue.accuracy(right, given))
    return figures


def find_mistakes(task: Task, examples: Sequence[Any], predictions: Sequence[Any], most: int = 10) -> list[Mistake]:
    """Return the mistakes with the highest probability, highest first; for a regression the largest errors.

    >>> from bert_elmo_jax.data.tasks import TextExample
    >>> task = Task("sst2", "classification", labels=("0", "1"))
    >>> example = TextExample("so good", None, "1", None, "dev.tsv", 2)
    >>> [mistake.where for mistake in find_mistakes(task, [example], [Label("0", 0.9, {})])]
    ['dev.tsv:2']
    """
    found: list[Mistake | None] = []
    for example, prediction in zip(examples, predictions):
        if isinstance(prediction, Tags):
            found += _wrong_words(example, prediction)
        else:
            found.append(_mistake(task, example, prediction))
    return sorted(filter(None, found), key=lambda mistake: -mistake.sure)[:most]


def count_confusions(labels: Sequence[str], true: Sequence[str], predicted: Sequence[str]) -> Counter[tuple[str, str]]:
    """Return the number of examples for each pair of true and predicted label."""
    counts = Counter({(a, b): 0 for a in labels for b in labels})
    counts.update(zip(true, predicted))
    return counts


def _value(prediction: Prediction) -> str | float | int:
    if isinstance(prediction, Number):
        return prediction.value
    if isinstance(prediction, Choice):
        return prediction.choice
    assert isinstance(prediction, Label)
    return prediction.label


def _answers(task: Task, questions: Sequence[Question], predictions: Sequence[AnswerSpan]) -> dict[str, float]:
    version = "v2.0" if task.unanswerable else "1.1"
    qas = [
        {"id": question.id, "answers": [{"text": answer.text} for answer in question.answers]} for question in questions
    ]
    data: Mapping[str, Any] = {"version": version, "data": [{"paragraphs": [{"qas": qas}]}]}
    ids = [question.id for question in questions]
    answers = {number: prediction.answer for number, prediction in zip(ids, predictions)}
    if not task.unanswerable:
        return squad.score(data, answers, rules="korquad" if task.name in ("korquad", "klue_mrc") else "squad1")
    figures = squad.score(data, answers)
    # The threshold is chosen among the best answers that are not empty, with and without the current threshold.
    best = {n: next((c.answer for c in p.n_best if c.answer), "") for n, p in zip(ids, predictions)}
    doubts = {number: max(min(prediction.null_score, NEVER), -NEVER) for number, prediction in zip(ids, predictions)}
    tuned = squad.score(data, best, doubts)
    threshold = tuned["best_f1_thresh"]
    if threshold not in doubts.values():  # the script's own value for "no answer is best", meant for probabilities
        threshold = -NEVER
    return figures | {name: tuned[name] for name in ("best_exact", "best_f1")} | {"null_threshold": threshold}


def _mistake(task: Task, example: Any, prediction: Prediction) -> Mistake | None:
    where = f"{example.file}:{example.line}"
    if isinstance(prediction, Number):
        error = abs(prediction.value - example.label)
        return Mistake(where, _text(example), f"{example.label:g}", str(prediction), error)
    if isinstance(prediction, AnswerSpan):
        rules = task.name == "korquad"
        right = [squad.normalize(a.text, korean=rules) for a in example.answers] or [""]
        if squad.normalize(prediction.answer, korean=rules) in right:
            return None
        shown = " / ".join(dict.fromkeys(answer.text for answer in example.answers)) or "(no answer)"
        return Mistake(where, example.text, shown, prediction.answer or "(no answer)", prediction.probability)
    if isinstance(prediction, Choice):
        if prediction.choice == example.label:
            return None
        sure = prediction.probabilities[prediction.choice]
        return Mistake(where, example.text, example.choices[example.label], prediction.text, sure)
    assert isinstance(prediction, Label)
    if prediction.label == example.label:
        return None
    return Mistake(where, _text(example), example.label, prediction.label, prediction.probability)


def _wrong_words(sentence: Any, prediction: Tags) -> list[Mistake]:
    return [
        Mistake(f"{sentence.file}:{line}", _around(sentence.words, n), right, tag, sure)
        for n, (line, right, tag, sure) in enumerate(
            zip(sentence.lines, sentence.tags, prediction.tags, prediction.probabilities)
        )
        if right != tag and not math.isnan(sure)
    ]


def _around(words: Sequence[str], place: int, reach: int = 6) -> str:
    before, behind = words[max(0, place - reach) : place], words[place + 1 : place + 1 + reach]
    return " ".join([*before, f"[{words[place]}]", *behind])


def _text(example: Any) -> str:
    return example.text if example.pair is None else f"{example.text} ‖ {example.pair}"
